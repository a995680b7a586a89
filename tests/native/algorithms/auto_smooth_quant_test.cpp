#include "algorithms/scaling/auto_smooth_quant.h"

#include <doctest/doctest.h>

#include <cmath>
#include <random>

#include "observers/registry.h"

using namespace wasmquant;

namespace {

constexpr size_t kAutoSmoothQuantTokens = 64, kAutoSmoothQuantColumns = 16, kAutoSmoothQuantRows = 12;

QuantizationSpec int8_along(int64_t axis) {
  QuantizationSpec spec;
  spec.dtype = Dtype::int8;
  spec.qscheme = QScheme::per_channel;
  spec.ch_axis = axis;
  spec.symmetric = true;
  spec.observer = min_max_observer_for(QScheme::per_channel);
  return spec;
}

TEST_CASE("AutoSmoothQuant: input outliers move into the weights only as far as the output improves") {
  std::mt19937 random(11);
  std::normal_distribution<float> normal;
  std::vector<float> x(kAutoSmoothQuantTokens * kAutoSmoothQuantColumns),
      w(kAutoSmoothQuantRows * kAutoSmoothQuantColumns), largest(kAutoSmoothQuantColumns);
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] = normal(random) * (i % kAutoSmoothQuantColumns == 3 ? 200.0f : 1.0f);
    largest[i % kAutoSmoothQuantColumns] = std::max(largest[i % kAutoSmoothQuantColumns], std::fabs(x[i]));
  }
  for (float& value : w) value = normal(random);
  const AwqLayer layer{w, int8_along(0)};
  const QuantizationSpec per_token = int8_along(1);
  std::vector<float> scales(kAutoSmoothQuantColumns), expected(kAutoSmoothQuantColumns);
  const std::vector<double> ranges(largest.begin(), largest.end());
  for (const ScaleLoss loss : {ScaleLoss::mse, ScaleLoss::mae, ScaleLoss::rmse}) {
    const auto found = search_smooth_scales(x, largest, {&layer, 1}, &per_token, loss, scales);
    REQUIRE(bool(found));
    CHECK(found->step > 4);
    CHECK(found->step % 2 == 0);
    CHECK(found->step / 2 < kAutoSmoothSteps);
    CHECK(found->loss < found->unscaled_loss * 2 / 3);
    REQUIRE(bool(awq_scales({ranges}, found->step, expected)));
    CHECK(scales == expected);
  }
  // RMSE is the root of MSE; inputs that are not quantized gain nothing from leaving their range.
  const auto mse = search_smooth_scales(x, largest, {&layer, 1}, &per_token, ScaleLoss::mse, scales);
  const auto rmse = search_smooth_scales(x, largest, {&layer, 1}, &per_token, ScaleLoss::rmse, scales);
  const auto weights = search_smooth_scales(x, largest, {&layer, 1}, nullptr, ScaleLoss::mse, scales);
  REQUIRE((mse && rmse && weights));
  CHECK(rmse->loss == doctest::Approx(std::sqrt(mse->loss)).epsilon(1e-9));
  CHECK(weights->loss < mse->loss);
  CHECK(!search_smooth_scales(std::span(x).first(5), largest, {&layer, 1}, nullptr, ScaleLoss::mse, scales));
}

}  // namespace
