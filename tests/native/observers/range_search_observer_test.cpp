// aihwkit's estimators and what they are made of.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "observers/registry.h"
#include "observers/search/bounded_minimum.h"
#include "observers/search/cross_entropy.h"
#include "observers/search/squared_error.h"
#include "observers/statistics/order_statistics.h"
#include "observers/statistics/pairwise_sum.h"
#include "tools/aihwkit/aihwkit_grid.h"

using namespace wasmquant;

namespace {

QuantizationSpec range_search_observer_spec_of(bool symmetric, ObserverId observer) {
  QuantizationSpec spec;
  spec.dtype = symmetric ? Dtype::int4 : Dtype::uint4;
  spec.symmetric = symmetric;
  spec.grid = aihwkit_grid();
  spec.observer = observer;
  spec.qscheme = info_of(observer).qscheme;
  return spec;
}

std::vector<float> range_search_observer_values(uint32_t seed, size_t count) {
  std::mt19937 random(seed);
  std::vector<float> x(count);
  for (float& v : x) v = static_cast<float>(static_cast<int>(random() % 2001) - 1000) / 800.0f;
  return x;
}

Observation seen(const QuantizationSpec& spec, const ObserverOptions& options,
                 const std::vector<std::vector<float>>& batches, const std::vector<uint64_t>& shape) {
  const auto observer = make_observer(spec, options);
  for (size_t i = 0; i < batches.size(); ++i) REQUIRE(observe(*observer, i, batches[i], shape));
  auto found = observer->finish();
  REQUIRE(found);
  return *found;
}

double range_search_observer_error_of(const std::vector<float>& x, const QuantizationSpec& spec,
                                      const QParams& qparams) {
  SquaredError error(x);
  return error(spec, qparams);
}

}  // namespace

TEST_CASE("the last batch, all of them, or a moving average") {
  const std::vector<std::vector<float>> batches = {{-1, 4}, {-3, 2}, {0.5f, 1}};
  const Observation last =
      seen(range_search_observer_spec_of(false, ObserverId::PerTensorCurrentMinMaxObserver), {}, batches, {2});
  CHECK(last.min[0] == 0.5f);
  CHECK(last.max[0] == 1.0f);
  ObserverOptions options;
  options.momentum = 0.5;
  const Observation moving =
      seen(range_search_observer_spec_of(false, ObserverId::PerTensorRunningMinMaxObserver), options, batches, {2});
  CHECK(moving.min[0] == -0.75f);  // ((-1 - 3) / 2 + 0.5) / 2
  CHECK(moving.max[0] == 2.0f);
}

TEST_CASE("tails: below for tensors, both for channels") {
  std::vector<float> x;
  for (int i = 0; i <= 100; ++i) x.push_back(static_cast<float>((i * 37) % 101));  // 0..100
  ObserverOptions options;
  options.tail_percent = 12.5;
  const Observation tensor =
      seen(range_search_observer_spec_of(false, ObserverId::PerTensorCurrentMinMaxObserver), options, {x}, {101});
  CHECK(tensor.min[0] == 12.5f);
  CHECK(tensor.max[0] == 100.0f);
  const Observation channel =
      seen(range_search_observer_spec_of(false, ObserverId::PerChannelCurrentMinMaxObserver), options, {x}, {1, 101});
  CHECK(channel.min[0] == 12.5f);
  CHECK(channel.max[0] == 87.5f);
}

TEST_CASE("order statistics") {
  std::vector<float> x = {5, 1, 4, 2, 3};
  CHECK(value_of_rank(x, 0) == 1);
  CHECK(value_of_rank(x, 4) == 5);
  CHECK(interpolated_percentile(x, 50) == 3);
  CHECK(interpolated_percentile(x, 100) == 5);
  CHECK(interpolated_percentile(x, 10) == doctest::Approx(1.4));
  std::vector<float> one = {7};
  CHECK(interpolated_percentile(one, 33) == 7);
}

TEST_CASE("bounded minimum: inside, and at an end") {
  const BoundedMinimum parabola = bounded_minimum([](double x) { return (x - 0.3) * (x - 0.3) + 2; }, 0, 1);
  CHECK(parabola.at == doctest::Approx(0.3));
  CHECK(parabola.value == doctest::Approx(2));
  CHECK(bounded_minimum([](double x) { return x; }, 1, 2).at == doctest::Approx(1).epsilon(1e-4));
  CHECK(bounded_minimum([](double) { return NAN; }, 0, 1).at >= 0);  // ends
}

TEST_CASE("cross entropy of the same scores is their entropy, and least") {
  const std::vector<float> x = {0, 0, 0, 0, 1, 1, 1, 1};
  std::vector<float> y = x;
  CHECK(CrossEntropy(x, classes_of(std::vector<uint64_t>{2, 4}, 8))(y) == doctest::Approx(2 * std::log(4.0)));
  y = {1, 0, 0, 0, 1, 1, 1, 1};
  CHECK(CrossEntropy(x, classes_of(std::vector<uint64_t>{2, 4}, 8))(y) > 2 * std::log(4.0));
  // The second dimension, wherever it lies.
  y = {0, 5, 0, 5, 0, 5, 0, 5};
  CHECK(CrossEntropy(y, classes_of(std::vector<uint64_t>{1, 4, 2}, 8))(y) == doctest::Approx(2 * std::log(4.0)));
  CHECK(classes_of(std::vector<uint64_t>{2, 4}, 7).classes == 7);
}

TEST_CASE("sums by halves are exact where sums are") {
  std::vector<float> x;
  for (int i = 1; i <= 1000; ++i) x.push_back(static_cast<float>(i));
  CHECK(pairwise_sum(x) == 500500.0f);
  CHECK(pairwise_sum({}) == 0.0f);
}

TEST_CASE("a grid finds the least error of its ranges over all batches") {
  const std::vector<std::vector<float>> batches = {range_search_observer_values(1, 60),
                                                   range_search_observer_values(2, 60)};
  ObserverOptions options;
  options.search = SearchMethod::grid;
  options.candidates = 30;
  options.range_margin = 0.25;
  QuantizationSpec spec = range_search_observer_spec_of(true, ObserverId::PerTensorRangeMSEObserver);
  const Observation found = seen(spec, options, batches, {6, 10});
  float max = 0;
  for (const float v : batches[0]) max = std::max(max, std::fabs(v));
  const double step = (double{max} + 0.25) / 30;
  double least = INFINITY, best = 0;
  for (int i = 1; i <= 30; ++i) {
    const auto r = static_cast<float>(i * step);
    double error = 0;
    for (const auto& batch : batches) error += range_search_observer_error_of(batch, spec, qparams_of(-r, r, spec));
    if (error >= least) continue;
    least = error;
    best = r;
  }
  CHECK(found.max[0] == static_cast<float>(best));
  CHECK(found.min[0] == -found.max[0]);
}

TEST_CASE("a relative margin follows the size of the weights") {
  ObserverOptions options;
  options.candidates = 40;
  options.range_margin = 0.25;
  options.relative_margin = true;
  for (const SearchMethod search : {SearchMethod::grid, SearchMethod::sections}) {
    options.search = search;
    for (const bool symmetric : {true, false}) {
      const QuantizationSpec spec = range_search_observer_spec_of(symmetric, ObserverId::PerTensorRangeMSEObserver);
      const std::vector<float> x = range_search_observer_values(4, 80);
      float max = 0;
      for (const float v : x) max = std::max(max, std::fabs(v));
      const Observation found = seen(spec, options, {x}, {8, 10});
      ObserverOptions absolute = options;
      absolute.relative_margin = false;
      absolute.range_margin = 0.25 * double{max};
      const Observation same = seen(spec, absolute, {x}, {8, 10});
      CHECK(found.min[0] == same.min[0]);
      CHECK(found.max[0] == same.max[0]);
      if (search != SearchMethod::grid) continue;  // sections end at an absolute tolerance, as scipy's do

      std::vector<float> small(x);
      for (float& v : small) v *= 0x1p-10f;
      const Observation scaled = seen(spec, options, {small}, {8, 10});
      CHECK(scaled.min[0] == found.min[0] * 0x1p-10f);
      CHECK(scaled.max[0] == found.max[0] * 0x1p-10f);
    }
  }
}

TEST_CASE("sections do no worse than the whole range, and use the last batch") {
  for (const bool symmetric : {true, false}) {
    const QuantizationSpec spec = range_search_observer_spec_of(symmetric, ObserverId::PerTensorRangeMSEObserver);
    const std::vector<float> x = range_search_observer_values(3, 200);
    const auto range = std::minmax_element(x.begin(), x.end());
    const double whole = range_search_observer_error_of(x, spec, qparams_of(*range.first, *range.second, spec));
    const Observation found = seen(spec, {}, {range_search_observer_values(4, 200), x}, {200});
    CHECK(range_search_observer_error_of(x, spec, found.qparams[0]) <= whole * 1.001);
  }
}

TEST_CASE("data without negative values is searched from zero, in unsigned codes") {
  std::vector<float> x = range_search_observer_values(5, 100);
  for (float& v : x) v = std::fabs(v);
  for (const bool symmetric : {true, false}) {
    const Observation found =
        seen(range_search_observer_spec_of(symmetric, ObserverId::PerTensorRangeMSEObserver), {}, {x}, {100});
    CHECK(found.min[0] == 0.0f);
    CHECK(found.spec.dtype == Dtype::uint4);
  }
}

TEST_CASE("cross entropy gives channels of matrices one range") {
  const Observation found = seen(range_search_observer_spec_of(true, ObserverId::PerChannelRangeCrossEntropyObserver),
                                 {}, {range_search_observer_values(6, 60)}, {4, 15});
  CHECK(found.max.size() == 4);
  CHECK(std::count(found.max.begin(), found.max.end(), found.max[0]) == 4);
  const Observation slices = seen(range_search_observer_spec_of(true, ObserverId::PerChannelRangeCrossEntropyObserver),
                                  {}, {range_search_observer_values(6, 60)}, {4, 3, 5});
  CHECK(std::count(slices.max.begin(), slices.max.end(), slices.max[0]) < 4);
}

TEST_CASE("wide codes and minifloats are searched, too") {
  for (const Dtype dtype : {Dtype::uint16, Dtype::int32, Dtype::minifloat, Dtype::uint2}) {
    CAPTURE(info_of(dtype).name);
    for (const SearchMethod method : {SearchMethod::grid, SearchMethod::sections}) {
      QuantizationSpec spec = range_search_observer_spec_of(false, ObserverId::PerTensorRangeMSEObserver);
      spec.dtype = dtype;
      spec.exponent_bits = 4;
      spec.mantissa_bits = 3;
      ObserverOptions options;
      options.search = method;
      options.candidates = 10;
      const Observation found = seen(spec, options, {range_search_observer_values(7, 40)}, {40});
      CHECK(found.min[0] < found.max[0]);
      CHECK(std::isfinite(found.qparams[0].scale));
    }
  }
}
