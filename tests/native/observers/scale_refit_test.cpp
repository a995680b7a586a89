// Scales that are fit to their codes: never a larger squared error than without, in every granularity, and scales that
// the storage dtype holds.
#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "numeric/half.h"
#include "observers/observer_spec.h"
#include "observers/registry.h"
#include "quantize/quantize.h"
#include "random_values.h"

using namespace wasmquant;

namespace {

struct RefitDtype {
  Dtype dtype;
  bool symmetric;
  ScaleSign sign;
};
constexpr RefitDtype kRefitDtypes[] = {
    {Dtype::int2, true, ScaleSign::positive},   {Dtype::int2, true, ScaleSign::signed_},
    {Dtype::int3, true, ScaleSign::positive},   {Dtype::int3, true, ScaleSign::signed_},
    {Dtype::int4, true, ScaleSign::signed_},    {Dtype::int8, true, ScaleSign::positive},
    {Dtype::uint2, false, ScaleSign::positive}, {Dtype::uint3, false, ScaleSign::positive},
    {Dtype::uint4, false, ScaleSign::positive}, {Dtype::int3, false, ScaleSign::positive},
};

struct RefitScheme {
  ObserverId observer;
  int64_t axis, group_size;
};
constexpr RefitScheme kRefitSchemes[] = {
    {ObserverId::PerChannelMinMaxObserver, 0, 0}, {ObserverId::PerChannelMinMaxObserver, 1, 0},
    {ObserverId::PerGroupMinMaxObserver, -1, 8},  {ObserverId::PerGroupMinMaxObserver, -1, 24},
    {ObserverId::PerGroupMinMaxObserver, 0, 4},   {ObserverId::PerGroupMinMaxObserver, -1, -1},
    {ObserverId::PerGroupMSEObserver, -1, 8},     {ObserverId::PerChannelMSEObserver, 0, 0},
};

QuantizationSpec refit_spec(const RefitDtype& dtype, const RefitScheme& scheme) {
  QuantizationSpec spec = test_observers::spec_of(scheme.observer, dtype.dtype, dtype.symmetric);
  spec.ch_axis = scheme.axis;
  spec.group_size = scheme.group_size;
  spec.scale_sign = dtype.sign;
  spec.scale_refit = true;
  return spec;
}

Observation refit_observed(const QuantizationSpec& spec, const std::vector<float>& x,
                           const std::vector<uint64_t>& shape, const std::vector<float>& importance = {}) {
  const auto observer = make_observer(spec);
  if (!importance.empty()) REQUIRE(observer->weigh(importance));
  REQUIRE(observe(*observer, 0, x, shape));
  auto found = observer->finish();
  REQUIRE(found);
  return std::move(*found);
}

// Weighted squared error of each scale.
std::vector<double> refit_losses(const QuantizationSpec& spec, const Observation& found, const std::vector<float>& x,
                                 const std::vector<uint64_t>& shape, const std::vector<float>& importance) {
  std::vector<uint8_t> codes(x.size());
  std::vector<float> y(x.size());
  quantize(found.granularity, spec, found.qparams, kernels::Path::real, x, 0, codes.data());
  dequantize(found.granularity, spec, found.qparams, codes.data(), x.size(), 0, y.data());
  std::vector<double> losses(found.qparams.size());
  uint64_t inner = 1;
  for (size_t i = 2; i < shape.size(); ++i) inner *= shape[i];
  for_each_run(found.granularity, 0, x.size(), [&](const Run& run) {
    for (uint64_t i = run.begin; i < run.begin + run.count; ++i) {
      const auto at = static_cast<size_t>(i);
      const double d = double{x[at]} - double{y[at]};
      losses[static_cast<size_t>(run.scale)] +=
          d * d * (importance.empty() ? 1.0 : double{importance[static_cast<size_t>(i / inner % shape[1])]});
    }
  });
  return losses;
}

}  // namespace

TEST_CASE("refit scales: the weighted squared error of no scale grows, in any granularity") {
  const std::vector<uint64_t> shapes[] = {{8, 24}, {4, 48}, {12, 24, 2}};
  for (const std::vector<uint64_t>& shape : shapes)
    for (const RefitScheme& scheme : kRefitSchemes)
      for (const RefitDtype& dtype : kRefitDtypes)
        for (const bool is_weighted : {false, true}) {
          if (shape.size() > 2 && scheme.group_size != 0) continue;  // groups are of matrices
          CAPTURE(info_of(dtype.dtype).name);
          CAPTURE(info_of(scheme.observer).name);
          CAPTURE(scheme.group_size);
          size_t count = 1;
          for (const uint64_t n : shape) count *= static_cast<size_t>(n);
          const std::vector<float> x = normal_values(count, static_cast<uint32_t>(count) + 3, 0.2f);
          std::vector<float> importance;
          if (is_weighted)
            for (size_t j = 0; j < shape[1]; ++j)
              importance.push_back(j % 5 == 0 ? 30.0f : 0.1f * static_cast<float>(j));
          const QuantizationSpec spec = refit_spec(dtype, scheme);
          QuantizationSpec plain = spec;
          plain.scale_refit = false;
          const bool searches = info_of(scheme.observer).method == ObserverMethod::per_scale_mse;
          const Observation found = refit_observed(spec, x, shape, importance);
          const Observation without = refit_observed(plain, x, shape, searches ? importance : std::vector<float>());
          const auto losses = refit_losses(spec, found, x, shape, importance);
          const auto before = refit_losses(spec, without, x, shape, importance);
          REQUIRE(losses.size() == before.size());
          double sum = 0, sum_before = 0;
          for (size_t i = 0; i < losses.size(); ++i) {
            CHECK(losses[i] <= before[i]);
            CHECK(std::signbit(found.qparams[i].scale) == std::signbit(without.qparams[i].scale));
            CHECK(found.qparams[i].zero_point == without.qparams[i].zero_point);
            sum += losses[i];
            sum_before += before[i];
          }
          if (!searches && info_of(dtype.dtype).bits <= 3) CHECK(sum < sum_before);
        }
}

TEST_CASE("refit scales: each is one that the storage dtype holds, and its codes cannot be fit better") {
  const std::vector<uint64_t> shape = {16, 64};
  const std::vector<float> x = normal_values(1024, 21, 0.1f);
  for (const ScaleType type : {ScaleType::float16, ScaleType::bfloat16})
    for (const RefitDtype& dtype : kRefitDtypes) {
      QuantizationSpec spec = refit_spec(dtype, {ObserverId::PerGroupMinMaxObserver, -1, 32});
      spec.scale_type = type;
      for (const QParams& q : refit_observed(spec, x, shape).qparams)
        CHECK(rounded_to(type == ScaleType::float16 ? Arithmetic::float16 : Arithmetic::bfloat16, q.scale) == q.scale);
    }
  // Values of a grid with another step than the range's: found exactly.
  constexpr float kCodes[] = {3, 1, -1, -2};
  std::vector<float> grid;
  for (int i = 0; i < 32; ++i) grid.push_back(kCodes[i % 4] * 0.25f);
  QuantizationSpec spec =
      refit_spec({Dtype::int3, true, ScaleSign::positive}, {ObserverId::PerGroupMinMaxObserver, -1, 32});
  CHECK(refit_losses(spec, refit_observed(spec, grid, {1, 32}), grid, {1, 32}, {})[0] == 0);
  spec.scale_refit = false;
  CHECK(refit_losses(spec, refit_observed(spec, grid, {1, 32}), grid, {1, 32}, {})[0] > 0.01);
}

TEST_CASE("refit scales: an e8m0 scale is the power of two of least weighted squared error") {
  const std::vector<uint64_t> shape = {8, 64};
  const std::vector<float> x = normal_values(512, 5, 0.3f);
  std::vector<float> importance;
  for (size_t j = 0; j < 64; ++j) importance.push_back(j % 7 == 0 ? 50.0f : 1.0f);
  for (const Dtype dtype : {Dtype::fp4, Dtype::fp6_e2m3, Dtype::fp6_e3m2, Dtype::fp8_e4m3})
    for (const ObserverId observer : {ObserverId::PerBlockMXObserver, ObserverId::PerGroupMSEObserver})
      for (const bool is_weighted : {false, true}) {
        QuantizationSpec spec = test_observers::spec_of(observer, dtype, true);
        spec.ch_axis = -1;
        spec.group_size = 32;
        spec.scale_format = ScaleFormat::e8m0;
        spec.scale_refit = true;
        const std::vector<float> weights = is_weighted ? importance : std::vector<float>();
        Observation found = refit_observed(spec, x, shape, weights);
        const std::vector<double> losses = refit_losses(spec, found, x, shape, weights);
        for (const float factor : {0.25f, 0.5f, 2.0f, 4.0f}) {
          Observation other = found;
          for (QParams& q : other.qparams) q.scale *= factor;
          const std::vector<double> others = refit_losses(spec, other, x, shape, weights);
          for (size_t i = 0; i < losses.size(); ++i) CHECK(losses[i] <= others[i] * (1 + 0x1p-16));
        }
        int exponent = 0;
        for (const QParams& q : found.qparams) CHECK(std::frexp(q.scale, &exponent) == 0.5f);
      }
}

TEST_CASE("refit scales: zeros, subnormals, extremes and values that are not finite") {
  for (const RefitDtype& dtype : kRefitDtypes) {
    const QuantizationSpec spec = refit_spec(dtype, {ObserverId::PerChannelMinMaxObserver, 0, 0});
    const std::vector<float> x = {0, 0, 0, 0, 1e-40f, 0, -1e-40f, 0, 3e38f, -3e38f, 1e38f, 0, 1e-30f, 2e-30f, 0, 0};
    for (const QParams& q : refit_observed(spec, x, {4, 4}).qparams) {
      CHECK(std::isfinite(q.scale));
      CHECK(q.scale != 0);
    }
    const auto observer = make_observer(spec);
    const std::vector<float> mixed = {1, NAN, 0.3f, -0.7f};
    REQUIRE(observer->begin(0, {1, 4}));
    CHECK(observer->update(mixed, 0) == 1);
    const auto found = observer->finish();
    REQUIRE(found);
    CHECK(std::isfinite(found->qparams[0].scale));
  }
}
