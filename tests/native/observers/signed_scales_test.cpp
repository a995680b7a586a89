// Scales that take the sign of their extreme: no value lies beyond the codes, in every granularity, and the searches
// never do worse than the range of the data.
#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "observers/observer_spec.h"
#include "observers/registry.h"
#include "quantize/quantize.h"
#include "random_values.h"

using namespace wasmquant;

namespace {

struct SignedCase {
  std::vector<uint64_t> shape;
  ObserverId observer;
  int64_t group_size;
};

constexpr Dtype kSignedDtypes[] = {Dtype::int2, Dtype::int3, Dtype::int4, Dtype::int8};

QuantizationSpec signed_spec(Dtype dtype, ObserverId observer, int64_t group_size) {
  QuantizationSpec spec = test_observers::spec_of(observer, dtype, true);
  spec.ch_axis = spec.qscheme == QScheme::per_group ? -1 : 0;
  spec.group_size = group_size;
  spec.scale_sign = ScaleSign::signed_;
  return spec;
}

std::vector<float> signed_values(const QuantizationSpec& spec, const Observation& found, const std::vector<float>& x) {
  std::vector<uint8_t> codes(x.size());
  std::vector<float> y(x.size());
  quantize(found.granularity, spec, found.qparams, kernels::Path::real, x, 0, codes.data());
  dequantize(found.granularity, spec, found.qparams, codes.data(), x.size(), 0, y.data());
  return y;
}

double squared_difference(const std::vector<float>& x, const std::vector<float>& y) {
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) sum += std::pow(double{x[i]} - double{y[i]}, 2);
  return sum;
}

}  // namespace

TEST_CASE("signed scales: the extreme of each scale is the lowest code") {
  const SignedCase cases[] = {{{5, 37}, ObserverId::PerTensorMinMaxObserver, 0},
                              {{5, 37}, ObserverId::PerChannelMinMaxObserver, 0},
                              {{9, 96}, ObserverId::PerGroupMinMaxObserver, 32},
                              {{7, 15}, ObserverId::PerGroupMinMaxObserver, 5}};
  for (const SignedCase& c : cases)
    for (const Dtype dtype : kSignedDtypes) {
      CAPTURE(info_of(dtype).name);
      CAPTURE(c.group_size);
      const QuantizationSpec spec = signed_spec(dtype, c.observer, c.group_size);
      const auto x = normal_values(static_cast<size_t>(c.shape[0] * c.shape[1]), 7, 0.3f);
      const auto found = observe_tensor(spec, x, c.shape);
      REQUIRE(found);
      const std::vector<float> y = signed_values(spec, *found, x);
      size_t below_zero = 0;
      for_each_run(found->granularity, 0, x.size(), [&](const Run& run) {
        const float scale = found->qparams[static_cast<size_t>(run.scale)].scale;
        const float min = found->min[static_cast<size_t>(run.scale)], max = found->max[static_cast<size_t>(run.scale)];
        CHECK(std::signbit(scale) == (max > -min));
        below_zero += scale < 0;
        for (uint64_t i = run.begin; i < run.begin + run.count; ++i) {
          const float value = x[static_cast<size_t>(i)], error = std::fabs(value - y[static_cast<size_t>(i)]);
          const bool is_extreme = std::fabs(value) == std::max(-min, max);
          if (is_extreme) CHECK(error <= std::fabs(value) * 0x1p-22f);
          // Half a step, but for the other end, whose code is one short of the lowest one's magnitude.
          CHECK(error <= std::fabs(scale) * (value / scale > 0 ? 1.0f : 0.5f) * (1 + 0x1p-20f));
        }
      });
      CHECK(below_zero > 0);
    }
}

TEST_CASE("signed scales: a search is never worse than the range, and both are better than positive scales here") {
  for (const ObserverId searched : {ObserverId::PerGroupMSEObserver, ObserverId::HQQObserver})
    for (const Dtype dtype : kSignedDtypes) {
      CAPTURE(info_of(dtype).name);
      const std::vector<uint64_t> shape = {32, 64};
      const auto x = normal_values(2048, 11);
      const auto error_of = [&](ObserverId observer, ScaleSign sign) {
        QuantizationSpec spec = signed_spec(dtype, observer, 32);
        spec.scale_sign = sign;
        const auto found = observe_tensor(spec, x, shape);
        REQUIRE(found);
        return squared_difference(x, signed_values(spec, *found, x));
      };
      const double of_range = error_of(ObserverId::PerGroupMinMaxObserver, ScaleSign::signed_);
      CHECK(error_of(searched, ScaleSign::signed_) <= of_range);
      CHECK(of_range < error_of(ObserverId::PerGroupMinMaxObserver, ScaleSign::positive));
    }
}

TEST_CASE("signed scales: zeros, subnormals and one sign") {
  for (const Dtype dtype : kSignedDtypes) {
    const QuantizationSpec spec = signed_spec(dtype, ObserverId::PerChannelMinMaxObserver, 0);
    const std::vector<float> x = {0, 0, 0, 0, 1e-40f, 0, -1e-40f, 0, 3, 1, 2, 0.5f, -3, -1, -2, 0};
    const auto found = observe_tensor(spec, x, {4, 4});
    REQUIRE(found);
    for (const QParams& q : found->qparams) CHECK(std::fabs(q.scale) >= kScaleEpsilon);
    const std::vector<float> y = signed_values(spec, *found, x);
    for (size_t i = 0; i < 8; ++i) CHECK(y[i] == 0);
    CHECK(y[8] == 3);
    CHECK(y[12] == -3);
  }
}
