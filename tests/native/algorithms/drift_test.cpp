// GPTAQ and Qronos: rounding for inputs that earlier layers' rounding has changed.
#include <doctest/doctest.h>

#include <cmath>
#include <random>

#include "algorithms/rounding/gptaq.h"
#include "algorithms/rounding/gptq.h"
#include "algorithms/rounding/qronos.h"
#include "observers/registry.h"

using namespace wasmquant;

namespace {

constexpr size_t kDriftTokens = 300, kDriftColumns = 48, kDriftRows = 20;

struct Layer {
  std::vector<float> x, changed, weight;  // [tokens, columns], [tokens, columns], [rows, columns]
};

// Correlated inputs, and what noise of this size makes of them.
Layer layer_of(uint32_t seed, float noise) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  Layer out;
  std::vector<float> mix(kDriftColumns * kDriftColumns);
  for (float& value : mix) value = normal(random) / 4;
  for (size_t t = 0; t < kDriftTokens; ++t) {
    std::vector<float> z(kDriftColumns);
    for (float& value : z) value = normal(random);
    for (size_t j = 0; j < kDriftColumns; ++j) {
      float sum = z[j] / 2;
      for (size_t k = 0; k < kDriftColumns; ++k) sum += z[k] * mix[k * kDriftColumns + j];
      out.x.push_back(sum);
      // The error has a part that goes with the input, as that of rounded layers does.
      out.changed.push_back(sum * (1 - noise) + noise * normal(random));
    }
  }
  for (size_t i = 0; i < kDriftRows * kDriftColumns; ++i) out.weight.push_back(normal(random));
  return out;
}

GpfqInputs pair_of(const Layer& layer) {
  GpfqInputs pair(kDriftColumns);
  REQUIRE(bool(pair.add(layer.x, layer.changed)));
  pair.finish();
  return pair;
}

QuantizationSpec drift_spec_of() {
  QuantizationSpec spec;
  spec.dtype = Dtype::int4;
  spec.qscheme = QScheme::per_group;
  spec.group_size = 16;
  spec.ch_axis = 1;
  spec.symmetric = true;
  spec.observer = min_max_observer_for(QScheme::per_group);
  return spec;
}

// |X W^T - X' Q^T|^2
double output_error(const Layer& layer, const std::vector<float>& q) {
  double sum = 0;
  for (size_t t = 0; t < kDriftTokens; ++t)
    for (size_t r = 0; r < kDriftRows; ++r) {
      double difference = 0;
      for (size_t j = 0; j < kDriftColumns; ++j)
        difference += double{layer.x[t * kDriftColumns + j]} * layer.weight[r * kDriftColumns + j] -
                      double{layer.changed[t * kDriftColumns + j]} * q[r * kDriftColumns + j];
      sum += difference * difference;
    }
  return sum;
}

enum class Method { gptq, gptaq, qronos };

std::vector<float> rounded(const Layer& layer, Method method, bool desc_act, double alpha, uint32_t block_size = 128) {
  const GpfqInputs pair = pair_of(layer);
  const std::vector<float> drift = input_drift(pair, 2.0 / kDriftTokens);
  std::vector<float> hessian;
  for (const float value : pair.square()) hessian.push_back(static_cast<float>(value * (2.0 / kDriftTokens)));
  auto feedback = error_feedback_of(hessian, kDriftColumns, 0.01, desc_act);
  REQUIRE(bool(feedback));
  if (method == Method::gptaq) add_drift(*feedback, drift, alpha);
  std::vector<float> weight = layer.weight;
  if (method == Method::qronos) REQUIRE(bool(correct_for_drift(*feedback, drift, weight)));
  GptqOptions options;
  options.block_size = block_size;
  options.desc_act = desc_act;
  std::vector<uint8_t> codes(weight.size());
  REQUIRE(bool(gptq(*feedback, drift_spec_of(), options, kDriftRows, weight, codes)));
  return weight;
}

TEST_CASE("GPTAQ and Qronos: with equal inputs both equal GPTQ, bit for bit") {
  Layer layer = layer_of(5, 0);
  layer.changed = layer.x;
  for (const bool desc_act : {false, true}) {
    const std::vector<float> expected = rounded(layer, Method::gptq, desc_act, 0);
    CHECK(rounded(layer, Method::gptaq, desc_act, 1) == expected);
    CHECK(rounded(layer, Method::qronos, desc_act, 0) == expected);
  }
}

TEST_CASE("GPTAQ and Qronos: closer to the float network's output where the inputs have changed") {
  for (const uint32_t seed : {1, 2, 3, 4}) {
    CAPTURE(seed);
    const Layer layer = layer_of(seed, 0.1f);
    for (const bool desc_act : {false, true}) {
      const double plain = output_error(layer, rounded(layer, Method::gptq, desc_act, 0));
      const double by_gptaq = output_error(layer, rounded(layer, Method::gptaq, desc_act, 1));
      const double by_qronos = output_error(layer, rounded(layer, Method::qronos, desc_act, 0));
      CHECK(by_gptaq < plain);
      CHECK(output_error(layer, rounded(layer, Method::gptaq, desc_act, kGptaqAlpha)) < plain);
      CHECK(by_qronos < plain);
    }
  }
}

TEST_CASE("GPTAQ: blocks of columns change only rounding") {
  const Layer layer = layer_of(9, 0.1f);
  const std::vector<float> whole = rounded(layer, Method::gptaq, true, 1),
                           blocked = rounded(layer, Method::gptaq, true, 1, 8);
  size_t different = 0;
  for (size_t i = 0; i < whole.size(); ++i) different += whole[i] != blocked[i] ? 1 : 0;
  CHECK(different < whole.size() / 100);
}

TEST_CASE("Qronos: the correction is the least squares solution with the first column held fixed") {
  const Layer layer = layer_of(4, 0.1f);
  const GpfqInputs pair = pair_of(layer);
  const std::vector<float> drift = input_drift(pair, 1);
  const std::vector<float> square(pair.square().begin(), pair.square().end());
  auto feedback = error_feedback_of(square, kDriftColumns, 0, false);
  REQUIRE(bool(feedback));
  std::vector<float> weight = layer.weight;
  REQUIRE(bool(correct_for_drift(*feedback, drift, weight)));
  // Residual of the normal equations: row 1 with the other columns as they were, the others with all that changed.
  for (size_t r = 0; r < kDriftRows; ++r)
    for (size_t i = 0; i < kDriftColumns; ++i) {
      double c = 0, found = 0, scale = 0;
      for (size_t j = 0; j < kDriftColumns; ++j) {
        c += double{layer.weight[r * kDriftColumns + j]} * drift[j * kDriftColumns + i];
        const double change = double{weight[r * kDriftColumns + j]} - layer.weight[r * kDriftColumns + j];
        if (i > 0 || j == 0) found += square[i * kDriftColumns + j] * change;
        scale = std::max(scale, std::fabs(double{square[i * kDriftColumns + j]}));
      }
      CHECK(std::fabs(c - found) < 2e-4 * scale);
    }
  CHECK(!correct_for_drift(*feedback, std::span(drift).first(5), weight));
}

TEST_CASE("largest eigenvalue") {
  const float diagonal[] = {3, 0, 0, 0, 7, 0, 0, 0, 5};
  CHECK(largest_eigenvalue(diagonal, 3) == doctest::Approx(7).epsilon(1e-6));
  const float zeros[4] = {};
  CHECK(largest_eigenvalue(zeros, 2) == 0);
}

}  // namespace
