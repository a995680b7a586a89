// AWQ: candidates by hand, and on planted outliers what each search must gain.
#include "algorithms/scaling/awq.h"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "algorithms/scaling/awq_rounds.h"
#include "core/list.h"
#include "observers/observer.h"
#include "random_values.h"

using namespace wasmquant;

namespace {

QuantizationSpec int4_of(QScheme qscheme, int64_t group_size) {
  QuantizationSpec spec;
  spec.dtype = Dtype::int4;
  spec.qscheme = qscheme;
  spec.ch_axis = qscheme == QScheme::per_group ? 1 : 0;
  spec.group_size = group_size;
  spec.observer = min_max_observer_for(qscheme);
  return spec;
}

const QuantizationSpec kGroups = int4_of(QScheme::per_group, 16);

// Inputs with a few channels fifty times as large as the others, as language models have them.
std::vector<float> outlier_inputs(size_t tokens, size_t columns) {
  std::vector<float> x = RandomValues(3).inputs(tokens, columns);
  for (size_t t = 0; t < tokens; ++t)
    for (size_t j = 3; j < columns; j += 23) x[t * columns + j] *= 50;
  return x;
}

// Most weights small, a few large: only such groups leave room for scaling a column up.
std::vector<float> peaked_weight(uint32_t seed, size_t count) {
  std::vector<float> weight = RandomValues(seed).vector(count);
  for (float& value : weight) value *= value * value;
  return weight;
}

std::vector<double> means_of(const std::vector<float>& x, size_t columns) {
  std::vector<double> means(columns);
  for (size_t i = 0; i < x.size(); ++i) means[i % columns] += std::fabs(x[i]);
  for (double& mean : means) mean /= static_cast<double>(x.size() / columns);
  return means;
}

// X^T X
std::vector<float> products_of(const std::vector<float>& x, size_t columns) {
  std::vector<float> out(columns * columns);
  for (size_t at = 0; at < x.size(); at += columns)
    for (size_t i = 0; i < columns; ++i)
      for (size_t j = 0; j < columns; ++j) out[i * columns + j] += x[at + i] * x[at + j];
  return out;
}

double total_of(const OutputError& inputs, const std::vector<float>& a, const std::vector<float>& b) {
  std::vector<float> difference(a.size());
  for (size_t i = 0; i < a.size(); ++i) difference[i] = a[i] - b[i];
  std::vector<double> sums(a.size() / inputs.columns());
  inputs.sum_squares({difference.data(), inputs.columns()}, 0, inputs.columns(), sums);
  double total = 0;
  for (const double sum : sums) total += sum;
  return total;
}

}  // namespace

TEST_CASE("the output error matches its definition, for all columns and for some") {
  const size_t tokens = 50, columns = 30, rows = 70;
  RandomValues random(1);
  const std::vector<float> x = random.vector(tokens * columns), d = random.vector(rows * columns);
  const OutputError inputs(x, columns);
  for (const auto& [first, count] : {std::pair<size_t, size_t>{0, 30}, {7, 11}, {29, 1}}) {
    std::vector<double> sums(rows);
    inputs.sum_squares({d.data() + first, columns}, first, count, sums);
    for (size_t i = 0; i < rows; ++i) {
      double expected = 0;
      for (size_t t = 0; t < tokens; ++t) {
        double y = 0;
        for (size_t j = first; j < first + count; ++j) y += double{x[t * columns + j]} * d[i * columns + j];
        expected += y * y;
      }
      REQUIRE(sums[i] == doctest::Approx(expected).epsilon(1e-5));
    }
  }
}

TEST_CASE("candidates worked by hand") {
  const std::vector<double> means = {16, 1, 0.0625};
  std::vector<float> scales(3);
  REQUIRE(awq_scales({means}, 0, scales));
  CHECK(scales == std::vector<float>{1, 1, 1});
  REQUIRE(awq_scales({means}, 10, scales));
  CHECK(scales == std::vector<float>{4, 1, 0.25f});
  REQUIRE(awq_scales({std::vector<double>{16, 1, 0}}, 10, scales));  // a channel without input counts as 1e-4
  CHECK(scales[0] == doctest::Approx(4 / std::sqrt(4e-4)));
  CHECK(scales[2] == doctest::Approx(1e-4 / std::sqrt(4e-4)));
  REQUIRE(awq_scales({std::vector<double>{0, 0, 0}}, 10, scales));
  CHECK(scales == std::vector<float>{1, 1, 1});
  CHECK_FALSE(awq_scales({std::vector<double>{1, NAN, 0}}, 10, scales));
  CHECK_FALSE(awq_scales({std::vector<double>{1}}, 10, scales));
}

TEST_CASE("candidates of duo scaling worked by hand") {
  const std::vector<double> means = {16, 1, 0.0625}, weights = {0.25, 1, 0.25};
  const AwqMeans both{means, weights};
  CHECK(both.steps() == kAwqSteps + kDuoSteps);
  CHECK(AwqMeans{means}.steps() == kAwqSteps);
  std::vector<float> scales(3);
  REQUIRE(awq_scales(both, kAwqSteps + 5, scales));  // sqrt(16) / (sqrt(0.25) + 1e-4), 1 / 1.0001, 0.25 / 0.5001
  const double raw[] = {4 / 0.5001, 1 / 1.0001, 0.25 / 0.5001}, middle = std::sqrt(raw[0] * raw[2]);
  for (size_t j = 0; j < 3; ++j) CHECK(scales[j] == doctest::Approx(raw[j] / middle));
  // |w| by the largest of its group and row: 1, 0.5 and 0.25, 1.
  const std::vector<float> weight = {2, -1, -0.5f, 2};
  QuantizationSpec pairs = kGroups;
  pairs.group_size = 2;
  const AwqLayer layer{weight, pairs};
  const auto found = weight_means({&layer, 1}, 2);
  REQUIRE(found);
  CHECK(*found == std::vector<double>{0.625, 0.75});
}

TEST_CASE("the search measures each candidate with its refit scales") {
  const size_t tokens = 96, columns = 64;
  const std::vector<float> x = outlier_inputs(tokens, columns), weight = peaked_weight(12, 40 * columns);
  QuantizationSpec spec = kGroups;
  spec.scale_refit = true;
  const OutputError inputs(x, columns);
  const std::vector<float> squares = inputs.squares(), ones(columns, 1.0f);
  for (size_t j = 0; j < columns; ++j) {
    double sum = 0;
    for (size_t t = 0; t < tokens; ++t) sum += double{x[t * columns + j]} * x[t * columns + j];
    REQUIRE(squares[j] == doctest::Approx(sum).epsilon(1e-6));
  }
  std::vector<float> plain(weight.size()), refit(weight.size());
  REQUIRE(quantize_scaled(weight, kGroups, ones, plain));
  REQUIRE(quantize_scaled(weight, spec, ones, refit, squares));
  double of_plain = 0, of_refit = 0;
  for (size_t i = 0; i < weight.size(); ++i) {
    of_plain += double{squares[i % columns]} * (weight[i] - plain[i]) * (weight[i] - plain[i]);
    of_refit += double{squares[i % columns]} * (weight[i] - refit[i]) * (weight[i] - refit[i]);
  }
  CHECK(of_refit < of_plain);
}

TEST_CASE("a team finds the same candidate as a single worker, bit for bit") {
  const size_t tokens = 96, columns = 64, rows = 900;
  const std::vector<float> x = outlier_inputs(tokens, columns), weight = peaked_weight(12, rows * columns);
  const AwqLayer layer{weight, kGroups};
  const std::vector<double> means = means_of(x, columns);
  std::vector<float> expected(columns), scales(columns);
  const auto alone = search_awq_scales(means, {&layer, 1}, OutputError(x, columns), expected);
  REQUIRE(alone);
  for (const size_t members : {size_t{2}, size_t{5}}) {
    List<AwqSearch> team;
    for (size_t member = 0; member < members; ++member)
      team.push_back(*AwqSearch::create(means, {&layer, 1}, OutputError(x, columns)));
    bool goes_on = true;
    while (goes_on) {
      for (size_t member = 0; member < members; ++member) REQUIRE(team[member].measure({member, members}));
      for (size_t to = 0; to < members; ++to)
        for (size_t from = 0; from < members; ++from) {
          const auto losses = team[from].losses({from, members});
          std::copy(losses.begin(), losses.end(), team[to].losses({from, members}).begin());
        }
      for (AwqSearch& search : team) goes_on = search.next();
    }
    for (const AwqSearch& search : team) {
      const auto choice = search.choice(scales);
      REQUIRE(choice);
      CHECK(choice->step == alone->step);
      CHECK(choice->loss == alone->loss);
      CHECK(scales == expected);
    }
  }
}

TEST_CASE("a search in parts of an expert's rows finds a candidate that loses as little as one of all rows") {
  const size_t tokens = 96, columns = 64, rows = 2 * kFewestRowsOfExpert;
  const std::vector<float> x = outlier_inputs(tokens, columns), weight = peaked_weight(12, rows * columns);
  const AwqLayer layer{weight, kGroups};
  const std::vector<double> means = means_of(x, columns);
  std::vector<float> scales(columns);
  const auto whole = search_awq_scales(means, {&layer, 1}, OutputError(x, columns), scales);
  auto search = AwqSearch::create(means, {&layer, 1}, OutputError(x, columns), false, kFewestRowsOfExpert);
  REQUIRE((whole && search));
  size_t rounds = 0;
  do {
    REQUIRE(search->measure({}));
    ++rounds;
  } while (search->next());
  const auto choice = search->choice(scales);
  REQUIRE(choice);
  CHECK(rounds == 4);
  CHECK(choice->loss < choice->unscaled_loss);
  CHECK(choice->loss <= 1.01 * whole->loss);
}

TEST_CASE("scales found on outlier channels lose less than no scales; the reported loss is the chosen candidate's") {
  const size_t tokens = 128, columns = 64;
  const std::vector<float> x = outlier_inputs(tokens, columns);
  const std::vector<float> first = peaked_weight(4, 20 * columns), second = peaked_weight(5, 9 * columns);
  const OutputError inputs(x, columns);
  const AwqLayer layers[] = {{first, kGroups}, {second, int4_of(QScheme::per_channel, 0)}};
  std::vector<float> scales(columns);
  const Result<AwqChoice> choice = search_awq_scales(means_of(x, columns), layers, inputs, scales);
  REQUIRE(choice);
  CHECK(choice->step > 0);
  CHECK(choice->loss < 0.75 * choice->unscaled_loss);
  double total = 0, unscaled = 0;
  for (const AwqLayer& layer : layers) {
    std::vector<float> values(layer.weight.size());
    const std::vector<float> weight(layer.weight.begin(), layer.weight.end());
    REQUIRE(quantize_scaled(weight, layer.spec, scales, values));
    total += total_of(inputs, values, weight);
    REQUIRE(quantize_scaled(weight, layer.spec, std::vector<float>(columns, 1.0f), values));
    unscaled += total_of(inputs, values, weight);
  }
  CHECK(choice->loss == doctest::Approx(total / (29 * tokens)));
  CHECK(choice->unscaled_loss == doctest::Approx(unscaled / (29 * tokens)));
}

TEST_CASE("blocks of GGUF are judged as they are stored: weights that they hold exactly are not scaled") {
  const size_t tokens = 128, columns = 256, rows = 24;
  const std::vector<float> x = outlier_inputs(tokens, columns), weight = peaked_weight(13, rows * columns);
  const OutputError inputs(x, columns);
  const std::vector<float> squares = inputs.squares(), ones(columns, 1.0f);
  std::vector<float> held(weight.size()), scales(columns), values(weight.size());
  for (const GgmlType type : {GgmlType::q4_0, GgmlType::q4_1, GgmlType::q5_1, GgmlType::q4_k, GgmlType::iq4_xs}) {
    CAPTURE(info_of(type).name);
    const AwqLayer layer{weight, kGroups, type};
    const auto choice = search_awq_scales(means_of(x, columns), {&layer, 1}, inputs, scales);
    REQUIRE(choice);
    CHECK(choice->step > 0);
    REQUIRE(round_scaled(layer, weight, scales, values, squares));
    CHECK(choice->loss == doctest::Approx(total_of(inputs, values, weight) / (rows * tokens)));
    REQUIRE(round_scaled(layer, weight, ones, held, squares));
    CHECK(choice->unscaled_loss == doctest::Approx(total_of(inputs, held, weight) / (rows * tokens)));
    const AwqLayer of_held{held, kGroups, type}, as_integers{held, kGroups};
    const auto found = search_awq_scales(means_of(x, columns), {&of_held, 1}, inputs, scales);
    REQUIRE(found);
    CHECK(found->unscaled_loss < 0.2 * choice->unscaled_loss);  // searches of scales find them again only nearly
    CHECK(found->step == 0);
    const auto others = search_awq_scales(means_of(x, columns), {&as_integers, 1}, inputs, scales);
    REQUIRE(others);
    CHECK(others->step > 0);
  }
}

TEST_CASE("a search on a part of many rows finds a candidate that loses about as little as the best one") {
  const size_t tokens = 128, columns = 64, rows = 1100;
  const std::vector<float> x = outlier_inputs(tokens, columns);
  const std::vector<float> weight = peaked_weight(11, rows * columns);
  const OutputError inputs(x, columns);
  const AwqLayer layers[] = {{std::span(weight).first(700 * columns), kGroups},
                             {std::span(weight).subspan(700 * columns), int4_of(QScheme::per_channel, 0)}};
  const std::vector<double> means = means_of(x, columns);
  std::vector<float> scales(columns);
  const Result<AwqChoice> choice = search_awq_scales(means, layers, inputs, scales);
  REQUIRE(choice);
  const auto loss_of = [&](size_t step) {
    double total = 0;
    REQUIRE(awq_scales({means}, step, scales));
    for (const AwqLayer& layer : layers) {
      std::vector<float> values(layer.weight.size());
      REQUIRE(quantize_scaled(layer.weight, layer.spec, scales, values));
      total += total_of(inputs, values, std::vector<float>(layer.weight.begin(), layer.weight.end()));
    }
    return total / static_cast<double>(rows * tokens);
  };
  double best = loss_of(0);
  CHECK(choice->unscaled_loss == doctest::Approx(best));
  for (size_t step = 1; step < kAwqSteps; ++step) best = std::min(best, loss_of(step));
  CHECK(choice->loss == doctest::Approx(loss_of(choice->step)));
  CHECK(choice->loss <= 1.02 * best);
}

TEST_CASE("groups of zeros and channels without input give numbers, not NaN") {
  const size_t tokens = 32, columns = 32;
  std::vector<float> x = outlier_inputs(tokens, columns), weight = RandomValues(6).vector(4 * columns);
  for (size_t t = 0; t < tokens; ++t) x[t * columns + 9] = 0;
  std::fill_n(weight.begin(), 16, 0.0f);
  const OutputError inputs(x, columns);
  const AwqLayer layer{weight, kGroups};
  std::vector<float> scales(columns);
  const Result<AwqChoice> choice = search_awq_scales(means_of(x, columns), {&layer, 1}, inputs, scales);
  REQUIRE(choice);
  CHECK(std::isfinite(choice->loss));
  const std::vector<float> before = weight;
  REQUIRE(clip_weight(weight, 4, kGroups, products_of(x, columns)));
  CHECK(std::equal(weight.begin(), weight.begin() + 16, before.begin()));
  for (const float value : weight) REQUIRE(std::isfinite(value));
}

TEST_CASE("clipping loses less where a group has an outlier, and only clamps") {
  const size_t tokens = 128, columns = 64, rows = 70;
  const std::vector<float> x = RandomValues(7).vector(tokens * columns);
  std::vector<float> weight = RandomValues(8).vector(rows * columns);
  for (size_t i = 0; i < weight.size(); i += 16) weight[i] = weight[i] < 0 ? -1.8f : 1.8f;
  const OutputError inputs(x, columns);
  for (const QuantizationSpec& spec : {kGroups, int4_of(QScheme::per_channel, 0), int4_of(QScheme::per_group, -1)}) {
    std::vector<float> clipped = weight, plain(weight.size()), rounded(weight.size());
    REQUIRE(clip_weight(clipped, rows, spec, products_of(x, columns)));
    CHECK(clipped != weight);
    for (size_t i = 0; i < weight.size(); ++i) {
      REQUIRE(std::fabs(clipped[i]) <= std::fabs(weight[i]));
      REQUIRE((clipped[i] == weight[i] || std::fabs(clipped[i]) >= 0.5f));
    }
    const std::vector<float> ones(columns, 1.0f);
    REQUIRE(quantize_scaled(weight, spec, ones, plain));
    REQUIRE(quantize_scaled(clipped, spec, ones, rounded));
    CHECK(total_of(inputs, rounded, weight) < total_of(inputs, plain, weight));
  }
}

TEST_CASE("AWQ refuses what it cannot do") {
  const OutputError inputs(std::vector<float>(8, 1.0f), 4);
  std::vector<float> scales(4), weight(12, 1.0f);
  const AwqLayer ragged{std::span(weight).first(7), kGroups};
  const Result<AwqChoice> choice = search_awq_scales(std::vector<double>(4, 1.0), {&ragged, 1}, inputs, scales);
  REQUIRE_FALSE(choice);
  CHECK(choice.error().code == ErrorCode::shape_mismatch);
  const std::vector<float> products(16, 1.0f);
  CHECK(clip_weight(weight, 2, kGroups, products).error().code == ErrorCode::shape_mismatch);
  CHECK(clip_weight(weight, 3, kGroups, products).error().code == ErrorCode::group_size_invalid);
  CHECK(clip_weight(weight, 3, int4_of(QScheme::per_tensor, 0), products).error().code == ErrorCode::spec_invalid);
}
