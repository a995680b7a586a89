// Brevitas' statistics: searches against all their candidates, averages by hand.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "observers/registry.h"
#include "observers/search/squared_error.h"
#include "observers/search/threshold_search.h"
#include "observers/sharing.h"
#include "tools/brevitas/brevitas_grid.h"

using namespace wasmquant;

namespace {

QuantizationSpec threshold_observer_spec_of(Dtype dtype, ObserverId observer, bool is_weight,
                                            bool power_of_two = false) {
  QuantizationSpec spec;
  spec.dtype = dtype;
  spec.symmetric = info_of(dtype).is_signed;
  spec.grid = brevitas_grid(is_weight, power_of_two, BrevitasVersion::v0_12_1);
  spec.observer = observer;
  spec.qscheme = info_of(observer).qscheme;
  return spec;
}

std::vector<float> threshold_observer_values(size_t count, float outlier) {
  std::vector<float> x;
  for (size_t i = 0; i < count; ++i) x.push_back(static_cast<float>((i * 7919) % 1013) / 1013.0f - 0.4f);
  x[count / 2] = outlier;
  return x;
}

double threshold_observer_error_of(const std::vector<float>& x, const QuantizationSpec& spec, const QParams& qparams) {
  SquaredError error(x);
  return error(spec, qparams);
}

}  // namespace

TEST_CASE("activations: the threshold is the mean over batches") {
  const auto observer =
      make_observer(threshold_observer_spec_of(Dtype::int8, ObserverId::PerTensorMeanPercentileObserver, false));
  const std::vector<float> first = {1.0f, -2.0f, 0.5f}, second = {4.0f, -1.0f, 0.0f};
  REQUIRE(observe(*observer, 0, first, {3}));
  REQUIRE(observe(*observer, 1, second, {3}));
  const auto found = observer->finish();
  REQUIRE(found);
  CHECK(found->qparams[0].scale == 3.0f / 128);
  CHECK(found->max[0] == 3.0f);

  const auto asymmetric =
      make_observer(threshold_observer_spec_of(Dtype::uint8, ObserverId::PerTensorMeanPercentileObserver, false));
  REQUIRE(observe(*asymmetric, 0, first, {3}));
  REQUIRE(observe(*asymmetric, 1, second, {3}));
  const auto range = asymmetric->finish();
  REQUIRE(range);
  CHECK(range->qparams[0].scale == 4.0f / 255);  // (3 + 5) / 2
  CHECK(range->qparams[0].zero_point == 96.0f);  // 1.5 / scale = 95.6
}

TEST_CASE("activations: the percentile excludes the largest of many values") {
  QuantizationSpec spec = threshold_observer_spec_of(Dtype::int8, ObserverId::PerTensorMeanPercentileObserver, false);
  std::vector<float> x = threshold_observer_values(100000, 50.0f);
  const auto found = observe_tensor(spec, x, {x.size()});  // k = 99999 of 100000
  REQUIRE(found);
  CHECK(found->max[0] < 1.0f);
  x.resize(40000);
  x[7] = -50.0f;
  const auto few = observe_tensor(spec, x, {x.size()});  // k = n
  REQUIRE(few);
  CHECK(few->max[0] == 50.0f);
}

TEST_CASE("weights: a searched threshold is the best of its candidates") {
  for (const Dtype dtype : {Dtype::int4, Dtype::uint4, Dtype::int8, Dtype::fp8_e4m3})
    for (const bool power_of_two : {false, true}) {
      if (power_of_two && !info_of(dtype).is_integer) continue;
      CAPTURE(info_of(dtype).name);
      const QuantizationSpec spec =
          threshold_observer_spec_of(dtype, ObserverId::PerTensorThresholdMSEObserver, true, power_of_two);
      const std::vector<float> x = threshold_observer_values(500, 6.0f);
      const float low = std::min(*std::min_element(x.begin(), x.end()), 0.0f), high = 6.0f;
      const Threshold from = spec.symmetric ? Threshold{high, 0} : Threshold{high - low, low};
      const ScaleRule rule(spec);
      double least = threshold_observer_error_of(x, spec, rule.of_threshold(from.length, from.low));
      for (int i = 2; i <= 20; ++i)
        least = std::min(least, threshold_observer_error_of(
                                    x, spec, rule.of_threshold(from.length / 20 * static_cast<float>(i), from.low)));
      const Threshold grid = search_threshold(x, spec, from, from.low, SearchMethod::grid);
      CHECK(threshold_observer_error_of(x, spec, rule.of_threshold(grid.length, grid.low)) <= least * (1 + 1e-6));
      // The 20 points of 0.13: both ends, and what torch.linspace puts between them.
      double least_of_interval = threshold_observer_error_of(x, spec, rule.of_threshold(from.length / 20, from.low));
      for (int i = 1; i <= 19; ++i) {
        const float base = from.length / 20, share = static_cast<float>(i) / 19.0f;
        least_of_interval = std::min(
            least_of_interval,
            threshold_observer_error_of(x, spec, rule.of_threshold(base + (from.length - base) * share, from.low)));
      }
      const Threshold interval = search_threshold(x, spec, from, from.low, SearchMethod::interval);
      CHECK(threshold_observer_error_of(x, spec, rule.of_threshold(interval.length, interval.low)) <=
            least_of_interval * (1 + 1e-5));
      const Threshold fibonacci = search_threshold(x, spec, from, from.low, SearchMethod::sections);
      CHECK(fibonacci.length <= from.length);
      CHECK(fibonacci.length >= from.length / 20);
    }
}

TEST_CASE("each channel is searched by itself, along any axis") {
  const std::vector<float> x = threshold_observer_values(60, 3.0f);
  std::vector<float> transposed(60);
  for (size_t i = 0; i < 4; ++i)
    for (size_t j = 0; j < 15; ++j) transposed[j * 4 + i] = x[i * 15 + j];
  QuantizationSpec spec = threshold_observer_spec_of(Dtype::int4, ObserverId::PerChannelThresholdMSEObserver, true);
  const auto rows = observe_tensor(spec, x, {4, 15});
  spec.ch_axis = 1;
  const auto columns = observe_tensor(spec, transposed, {15, 4});
  REQUIRE(rows);
  REQUIRE(columns);
  CHECK(rows->max == columns->max);
}

TEST_CASE("an incomplete batch is an error until other observers' pieces complete it") {
  for (const ObserverId id : {ObserverId::PerTensorMeanPercentileObserver, ObserverId::PerTensorThresholdMSEObserver,
                              ObserverId::PerTensorRangeMSEObserver}) {
    const QuantizationSpec spec = threshold_observer_spec_of(Dtype::int4, id, true);
    const std::vector<float> x = threshold_observer_values(40, 2.0f);
    const auto whole = observe_tensor(spec, x, {40});
    REQUIRE(whole);
    const auto first = make_observer(spec), second = make_observer(spec);
    REQUIRE(first->begin(0, {40}));
    first->update({x.data() + 10, 30}, 10);
    const auto unfinished = first->finish();
    REQUIRE_FALSE(unfinished);
    CHECK(unfinished.error().code == ErrorCode::state_invalid);
    REQUIRE(second->begin(0, {40}));
    second->update({x.data(), 10}, 0);
    REQUIRE(first->merge(*second));
    const auto found = first->finish();
    REQUIRE(found);
    CHECK(observer_tests::same(*found, *whole));
  }
}
