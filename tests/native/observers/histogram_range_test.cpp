// Ranges by histogram: percentile, squared error, torch's search.
#include "observers/statistics/histogram_range.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "observers/registry.h"
#include "quantize/quantize.h"
#include "random_values.h"

using namespace wasmquant;

namespace {

std::vector<float> values_with(float outlier, size_t count, uint32_t seed) {
  std::vector<float> x = normal_values(count, seed);
  x[count / 2] = outlier;
  return x;
}

Observation histogram_range_observed(ObserverId observer, Dtype dtype, bool symmetric, const std::vector<float>& x) {
  QuantizationSpec spec;
  spec.dtype = dtype;
  spec.symmetric = symmetric;
  spec.observer = observer;
  auto found = observe_tensor(spec, x, {x.size()});
  REQUIRE(static_cast<bool>(found));
  return *found;
}

double squared_error(Dtype dtype, bool symmetric, const std::vector<float>& x, const QParams& qparams) {
  QuantizationSpec spec;
  spec.dtype = dtype;
  spec.symmetric = symmetric;
  Granularity g;
  g.inner = x.size();
  std::vector<float> y(x.size());
  fake_quantize(g, spec, {&qparams, 1}, x, 0, y.data());
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) sum += std::pow(static_cast<double>(x[i]) - static_cast<double>(y[i]), 2);
  return sum;
}

}  // namespace

TEST_CASE("histogram: bins are closed below, the last one on both sides; non-finite values are left out") {
  Histogram h;
  h.open(0, 4, 4);
  const float inf = std::numeric_limits<float>::infinity();
  h.add(std::vector<float>{0.0f, 0.999f, 1.0f, 2.5f, 4.0f, 9.0f, -1.0f, inf, -inf, std::nanf("")});
  CHECK(h.counts == std::vector<uint64_t>{3, 1, 1, 2, 3});
  h.of_magnitudes = h.skips_zeros = true;
  h.open(0, 4, 4);
  h.add(std::vector<float>{0.0f, -0.0f, -2.5f, 0.5f});
  CHECK(h.counts == std::vector<uint64_t>{1, 0, 1, 0, 2});
  CHECK(h.total() == 2);
  CHECK(h.edge(4) == 4.0f);
  CHECK(h.center(1) == 1.5f);
}

TEST_CASE("percentile of magnitudes: left edge of the bin that reaches the share (spec 4.7)") {
  Histogram h;
  h.of_magnitudes = true;
  h.open(0, 10, 10);
  h.counts = {50, 30, 10, 0, 0, 9, 0, 0, 0, 1, 7};
  float min = -10, max = 10;
  choose_percentile(h, 99.99999999, min, max);
  CHECK(min == 0);
  CHECK(max == 9);
  choose_percentile(h, 99, min, max);
  CHECK(max == 5);
  choose_percentile(h, 90, min, max);
  CHECK(max == 2);
  choose_percentile(h, 0, min, max);
  CHECK(max == 0);
}

TEST_CASE("percentile of both signs cuts both tails, and at 100 % nothing") {
  Histogram h;
  h.open(-5, 5, 10);
  h.counts = {1, 0, 9, 20, 30, 20, 10, 9, 0, 1, 7};
  const auto chosen = [&](double percent) {
    float min = -5, max = 5;
    choose_percentile(h, percent, min, max);
    return std::pair(min, max);
  };
  CHECK(chosen(100) == std::pair(-5.0f, 5.0f));
  CHECK(chosen(99.99999999) == std::pair(-5.0f, 5.0f));
  CHECK(chosen(99) == std::pair(-3.0f, 3.0f));
  CHECK(chosen(90) == std::pair(-2.0f, 2.0f));
  const Observation skewed =
      histogram_range_observed(ObserverId::PerTensorPercentileObserver, Dtype::uint8, false, {-1.0f, 0.0f, 2.0f, 3.0f});
  CHECK(skewed.min[0] == -1.0f);
  CHECK(skewed.max[0] == 3.0f);
  CHECK(skewed.qparams[0].zero_point == 64);
}

TEST_CASE("percentile of zeros and of no data is the smallest scale") {
  for (const std::vector<float>& x : {std::vector<float>{}, std::vector<float>(7, 0.0f)})
    for (const bool symmetric : {true, false}) {
      const Observation found =
          histogram_range_observed(ObserverId::PerTensorPercentileObserver, Dtype::int8, symmetric, x);
      CHECK(found.qparams[0].scale == kScaleEpsilon);
    }
}

TEST_CASE("least error: never worse than min-max in its own measure, and far better with an outlier") {
  for (const Dtype dtype : {Dtype::int8, Dtype::int4, Dtype::uint4, Dtype::fp8_e4m3})
    for (const bool symmetric : {true, false}) {
      if (!symmetric && !info_of(dtype).is_integer) continue;
      for (const float outlier : {0.0f, 30.0f, -30.0f}) {
        CAPTURE(info_of(dtype).name);
        CAPTURE(symmetric);
        CAPTURE(outlier);
        const std::vector<float> x = outlier != 0 ? values_with(outlier, 5000, 3) : normal_values(5000, 3);
        const Observation mse = histogram_range_observed(ObserverId::PerTensorMSEObserver, dtype, symmetric, x);
        const Observation whole = histogram_range_observed(ObserverId::PerTensorMinMaxObserver, dtype, symmetric, x);
        REQUIRE(mse.errors.size() >= 100);
        CHECK(*std::min_element(mse.errors.begin(), mse.errors.end()) <= mse.errors[0]);
        CHECK(mse.min[0] >= whole.min[0]);
        CHECK(mse.max[0] <= whole.max[0]);
        const double found = squared_error(dtype, symmetric, x, mse.qparams[0]);
        const double widest = squared_error(dtype, symmetric, x, whole.qparams[0]);
        CHECK(found <= widest * 1.001);
        if (info_of(dtype).bits == 4 && outlier != 0 && !(symmetric && !info_of(dtype).is_signed))
          CHECK(found < widest / 2);
      }
    }
}

TEST_CASE("last bins: the three candidates of Quark, minimum 0") {
  const std::vector<float> x = normal_values(4000, 4);
  const Observation found = histogram_range_observed(ObserverId::PerTensorMSELastBinsObserver, Dtype::int8, true, x);
  REQUIRE(found.candidates.size() == 3);
  CHECK(found.min[0] == 0.0f);
  CHECK(std::find(found.candidates.begin(), found.candidates.end(), found.max[0]) != found.candidates.end());
  CHECK(found.errors[0] > 0);
}

// amd-quark 0.13: bins of magnitudes in symmetric specs, of signed values between minimum and maximum in asymmetric ones.
TEST_CASE("last bins of an asymmetric spec end at the maximum, those of a symmetric one at the largest magnitude") {
  std::vector<float> x = normal_values(4000, 4);
  x[7] = -20;
  x[8] = 5;
  for (const bool symmetric : {false, true}) {
    const Observation found =
        histogram_range_observed(ObserverId::PerTensorMSELastBinsObserver, Dtype::int8, symmetric, x);
    const float width = (symmetric ? 20.0f : 25.0f) / 2048;
    const float end = symmetric ? 20.0f : 5.0f;
    REQUIRE(found.candidates.size() == 3);
    for (int i = 0; i < 3; ++i)
      CHECK(found.candidates[static_cast<size_t>(i)] ==
            doctest::Approx(end - (2.5f - static_cast<float>(i)) * width).epsilon(1e-5));
  }
}

TEST_CASE("least squares search keeps a uniform range and cuts an outlier off") {
  std::vector<float> uniform;
  for (int i = 0; i <= 10000; ++i) uniform.push_back(static_cast<float>(i) / 10000);
  const Observation even =
      histogram_range_observed(ObserverId::PerTensorHistogramObserverPro, Dtype::uint4, false, uniform);
  CHECK(even.max[0] > 0.9f);
  const std::vector<float> x = values_with(100.0f, 20000, 6);
  const Observation cut = histogram_range_observed(ObserverId::PerTensorHistogramObserverPro, Dtype::int4, true, x);
  CHECK(cut.max[0] < 50.0f);
}
