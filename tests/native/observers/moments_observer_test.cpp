// First values of learned scales, by hand.
#include "observers/moments_observer.h"

#include <doctest/doctest.h>

#include <cmath>
#include <random>

#include "observers/observer_spec.h"
#include "observers/registry.h"

using namespace wasmquant;
using test_observers::spec_of;

namespace {

float scale_of(const QuantizationSpec& spec, const std::vector<float>& x, size_t channel = 0) {
  const auto found = observe_tensor(spec, x, {2, x.size() / 2});
  REQUIRE(found);
  CHECK(found->qparams[channel].zero_point == 0);
  return found->qparams[channel].scale;
}

}  // namespace

TEST_CASE("LSQ: 2 mean|x| / sqrt(largest code), of the tensor or of each channel") {
  const std::vector<float> x = {1, -2, 3, -4, 10, 20, -30, 40};
  CHECK(scale_of(spec_of(ObserverId::LSQObserver, Dtype::int8, true), x) ==
        static_cast<float>(2 * 13.75 / std::sqrt(127.0)));
  CHECK(scale_of(spec_of(ObserverId::LSQObserver, Dtype::uint8, false), x) ==
        static_cast<float>(2 * 13.75 / std::sqrt(255.0)));
  const QuantizationSpec channels = spec_of(ObserverId::PerChannelLSQObserver, Dtype::int4, true);
  CHECK(scale_of(channels, x, 0) == static_cast<float>(2 * 2.5 / std::sqrt(7.0)));
  CHECK(scale_of(channels, x, 1) == static_cast<float>(2 * 25.0 / std::sqrt(7.0)));
  CHECK(scale_of(spec_of(ObserverId::LSQObserver, Dtype::int8, true), {0, 0}) == 0x1p-23f);
}

TEST_CASE("TQT: the power of two above |mean| + 3 standard deviations") {
  const QuantizationSpec spec = spec_of(ObserverId::TQTObserver, Dtype::int8, true);
  CHECK(scale_of(spec, {1, -1, 1, -1}) == 4.0f / 128);            // 3
  CHECK(scale_of(spec, {2, 0, 2, 0}) == 8.0f / 128);              // 1 + 3 and the 1e-6
  CHECK(scale_of(spec, {0.5f, 0.5f, 0.5f, 0.5f}) == 1.0f / 128);  // no spread
}

TEST_CASE("TQT by Jeffreys divergence: the full range of little data, less than the outlier of much data") {
  const QuantizationSpec spec = spec_of(ObserverId::TQTKLJObserver, Dtype::int8, true);
  CHECK(scale_of(spec, {1, -3, 2, 0.5f}) == 4.0f / 128);  // fewer bins than codes: the largest magnitude
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  std::vector<float> x(100000);
  for (float& v : x) v = normal(random);
  x[77] = 40;
  const float scale = scale_of(spec, x);
  CHECK(scale < 64.0f / 128);
  CHECK(scale >= 4.0f / 128);
}

TEST_CASE("moments equal float64 sums, in any order") {
  std::mt19937 random(4);
  std::normal_distribution<float> normal(0.3f, 2.0f);
  std::vector<float> x(5000);
  double sum = 0, magnitudes = 0;
  for (float& v : x) {
    v = normal(random);
    sum += static_cast<double>(v);
    magnitudes += static_cast<double>(std::fabs(v));
  }
  const double mean = sum / 5000;
  double variance = 0;
  for (const float v : x) variance += (static_cast<double>(v) - mean) * (static_cast<double>(v) - mean) / 5000;
  Moments whole, parts;
  whole.add(x, 0x1p-4);
  x.push_back(std::nanf(""));
  parts.add(std::span(x).subspan(1234), 0x1p-4);
  parts.add(std::span(x).first(1234), 0x1p-4);
  CHECK(whole.mean() == parts.mean());
  CHECK(whole.standard_deviation() == parts.standard_deviation());
  CHECK(whole.mean() * 16 == doctest::Approx(mean).epsilon(1e-10));
  CHECK(whole.mean_magnitude() * 16 == doctest::Approx(magnitudes / 5000).epsilon(1e-10));
  CHECK(whole.standard_deviation() * 16 == doctest::Approx(std::sqrt(variance)).epsilon(1e-10));
}
