// Refinement after GPTQ: what it may not make worse, what it must find, what must not matter.
#include "algorithms/rounding/refinement.h"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "algorithms/hessian.h"
#include "algorithms/rounding/gptq.h"
#include "observers/registry.h"
#include "quantize/quantize.h"
#include "random_values.h"

using namespace wasmquant;

namespace {

struct RefinedLayer {
  size_t rows, columns, group;
  QuantizationSpec spec;
  std::vector<float> weight, hessian, values;
  std::vector<uint8_t> codes;
  std::vector<QParams> qparams;
  std::vector<uint32_t> groups;

  RefinedRows view(size_t begin, size_t end) {
    const size_t bytes = code_bytes_of(spec), count = columns / group, n = (end - begin) * columns;
    return {hessian,
            groups,
            count,
            spec,
            std::span<const float>(weight).subspan(begin * columns, n),
            std::span(values).subspan(begin * columns, n),
            std::span(codes).subspan(begin * columns * bytes, n * bytes),
            std::span(qparams).subspan(begin * count, (end - begin) * count)};
  }
  RefinedRows all() { return view(0, rows); }

  std::vector<double> errors() const {
    std::vector<double> out(rows);
    for (size_t row = 0; row < rows; ++row)
      for (size_t i = 0; i < columns; ++i)
        for (size_t j = 0; j < columns; ++j)
          out[row] += double{weight[row * columns + i] - values[row * columns + i]} * hessian[i * columns + j] *
                      double{weight[row * columns + j] - values[row * columns + j]};
    return out;
  }
};

constexpr auto kept = [](float scale) { return scale; };

// A layer after GPTQ, with inputs that are correlated.
RefinedLayer rounded_layer(Dtype dtype, bool symmetric, ScaleFormat format, uint32_t seed) {
  RefinedLayer layer{70, 96, 32, {}, {}, {}, {}, {}, {}, {}};
  layer.spec.dtype = dtype;
  layer.spec.symmetric = symmetric;
  layer.spec.qscheme = QScheme::per_group;
  layer.spec.ch_axis = 1;
  layer.spec.group_size = 32;
  layer.spec.scale_format = format;
  layer.spec.observer = ObserverId::PerGroupMinMaxObserver;
  layer.weight = normal_values(layer.rows * layer.columns, seed);
  std::vector<float> x = normal_values(400 * layer.columns, seed + 1);
  for (size_t at = 0; at < x.size(); at += layer.columns)
    for (size_t j = 1; j < layer.columns; ++j) x[at + j] = 0.6f * x[at + j - 1] + x[at + j] * (j % 7 == 0 ? 4 : 1);
  HessianAccumulator accumulator(layer.columns);
  REQUIRE(accumulator.add(x, 400));
  layer.hessian = *std::move(accumulator).finish();
  const auto feedback = error_feedback_of(layer.hessian, layer.columns, 0.01, true);
  REQUIRE(feedback);
  layer.values = layer.weight;
  layer.codes.resize(layer.weight.size() * code_bytes_of(layer.spec));
  layer.qparams = *gptq(*feedback, layer.spec, {}, layer.rows, layer.values, layer.codes);
  damp_diagonal(layer.hessian, layer.columns, 0.01);
  for (size_t j = 0; j < layer.columns; ++j) layer.groups.push_back(static_cast<uint32_t>(j / layer.group));
  return layer;
}

constexpr struct {
  Dtype dtype;
  bool symmetric;
  ScaleFormat format;
} kRefined[] = {{Dtype::int3, true, ScaleFormat::float32},
                {Dtype::int4, true, ScaleFormat::float32},
                {Dtype::uint4, false, ScaleFormat::float32},
                {Dtype::fp4, true, ScaleFormat::e8m0}};

}  // namespace

TEST_CASE("refinement makes no row worse, and values stay those of codes and scales") {
  for (const auto& one : kRefined) {
    RefinedLayer layer = rounded_layer(one.dtype, one.symmetric, one.format, 5);
    double before = 0, after = 0;
    std::vector<double> last = layer.errors();
    for (const double error : last) before += error;
    const bool refits = can_refit(layer.spec);
    CHECK(refits == (one.format == ScaleFormat::float32));
    for (int turn = 0; turn < 2; ++turn) {
      if (refits) refit_row_scales(layer.all(), kept);
      descend_codes(layer.all());
      const std::vector<double> now = layer.errors();
      // The ridge of the scales may cost a ten-thousandth of their squares.
      for (size_t row = 0; row < layer.rows; ++row) REQUIRE(now[row] <= last[row] * (turn == 0 ? 1.02 : 1.005));
      last = now;
    }
    for (const double error : last) after += error;
    CHECK_MESSAGE(after < before * 0.95, info_of(one.dtype).name, after / before);
    const Granularity g = *granularity_of({layer.rows, layer.columns}, layer.spec);
    std::vector<float> decoded(layer.values.size());
    dequantize(g, layer.spec, layer.qparams, layer.codes.data(), decoded.size(), 0, decoded.data());
    for (size_t i = 0; i < decoded.size(); ++i) REQUIRE(decoded[i] == doctest::Approx(layer.values[i]).epsilon(1e-6));
  }
}

TEST_CASE("refining the rows in parts gives the same bits as refining all of them") {
  RefinedLayer whole = rounded_layer(Dtype::int3, true, ScaleFormat::float32, 9), parts = whole;
  for (RefinedLayer* layer : {&whole, &parts}) {
    const size_t step = layer == &whole ? layer->rows : 7;
    for (size_t row = 0; row < layer->rows; row += step) {
      refit_row_scales(layer->view(row, row + step), kept);
      descend_codes(layer->view(row, row + step));
    }
  }
  CHECK(whole.values == parts.values);
  CHECK(whole.codes == parts.codes);
}

TEST_CASE("after enough passes no change of a single code helps") {
  RefinedLayer layer = rounded_layer(Dtype::int3, true, ScaleFormat::float32, 3);
  for (int pass = 0; pass < 30; ++pass) descend_codes(layer.all());
  const std::vector<double> best = layer.errors();
  for (size_t j = 0; j < layer.columns; ++j)
    for (const float step : {-1.0f, 1.0f}) {
      RefinedLayer other = layer;
      for (size_t row = 0; row < layer.rows; ++row) {
        const float scale = layer.qparams[row * 3 + layer.groups[j]].scale;
        const float code = std::round(layer.values[row * layer.columns + j] / scale) + step;
        if (code >= -4 && code <= 3) other.values[row * layer.columns + j] = code * scale;
      }
      const std::vector<double> changed = other.errors();
      for (size_t row = 0; row < layer.rows; ++row) REQUIRE(changed[row] >= best[row] * (1 - 1e-4));
    }
}

TEST_CASE("refinement recovers the scales that a weight was made with, rounded to the stored type") {
  RefinedLayer layer = rounded_layer(Dtype::int4, true, ScaleFormat::float32, 21);
  const std::vector<QParams> truth = layer.qparams;
  layer.weight = layer.values;
  for (size_t i = 0; i < truth.size(); ++i) layer.qparams[i].scale = truth[i].scale * (i % 2 == 0 ? 1.3f : 0.8f);
  for (size_t i = 0; i < layer.values.size(); ++i) layer.values[i] *= (i / layer.group) % 2 == 0 ? 1.3f : 0.8f;
  RefinedLayer stored = layer;
  refit_row_scales(layer.all(), kept);
  for (size_t i = 0; i < truth.size(); ++i)
    CHECK(layer.qparams[i].scale == doctest::Approx(truth[i].scale).epsilon(1e-3));
  refit_row_scales(stored.all(), [](float scale) { return std::ldexp(std::round(std::ldexp(scale, 12)), -12); });
  for (const QParams& q : stored.qparams) CHECK(std::ldexp(q.scale, 12) == std::round(std::ldexp(q.scale, 12)));
}

TEST_CASE("columns without input keep their codes") {
  RefinedLayer layer = rounded_layer(Dtype::int4, true, ScaleFormat::float32, 33);
  for (size_t i = 0; i < layer.columns; ++i)
    layer.hessian[i * layer.columns + 5] = layer.hessian[5 * layer.columns + i] = 0;
  const std::vector<uint8_t> before = layer.codes;
  damp_diagonal(layer.hessian, layer.columns, 0.5);
  CHECK(layer.hessian[5 * layer.columns + 5] == 0);
  descend_codes(layer.all());
  for (size_t row = 0; row < layer.rows; ++row)
    CHECK(layer.codes[row * layer.columns + 5] == before[row * layer.columns + 5]);
}
