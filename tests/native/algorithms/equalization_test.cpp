// Cross-layer equalization and bias correction: by hand, and what must not change.
#include "algorithms/scaling/equalization.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "algorithms/scaling/bias_correction.h"
#include "random_values.h"

using namespace wasmquant;

namespace {

ErrorCode code_of(const Status& status) { return status ? ErrorCode::json_invalid : status.error().code; }

EqualizedRegion region_of(std::vector<float>& made, std::vector<float>& bias, std::vector<float>& read, size_t channels,
                          size_t inner = 1) {
  EqualizedRegion region;
  region.channels = channels;
  region.sources.push_back({made, bias});
  region.sinks.push_back({read, inner});
  return region;
}

}  // namespace

TEST_CASE("ranges of paired channels become equal; channels with nothing to balance are unchanged") {
  std::vector<float> made = {4, -2, 0, 0}, bias, read = {1, 3, 0.5f, 2};
  EqualizedRegion region = region_of(made, bias, read, 2);
  EqualizationOptions options;
  options.iterations = 1;
  REQUIRE(equalize({&region, 1}, options));
  CHECK(made == std::vector<float>{2, -1, 0, 0});  // s = sqrt(4) / sqrt(1)
  CHECK(read == std::vector<float>{2, 3, 1, 2});
}

TEST_CASE("ReLU between the layers: the output is unchanged, the ranges become equal, a bias counts") {
  RandomValues random(4);
  const size_t inputs = 5, channels = 7, outputs = 3;
  const std::vector<float> x = random.vector(inputs);
  std::vector<float> made = random.vector(channels * inputs), bias = random.vector(channels),
                     read = random.vector(outputs * channels);
  for (size_t i = 0; i < inputs; ++i) made[i] *= 40;
  const auto output = [&] {
    std::vector<double> y(outputs);
    for (size_t c = 0; c < channels; ++c) {
      double sum = bias[c];
      for (size_t i = 0; i < inputs; ++i) sum += double{made[c * inputs + i]} * x[i];
      for (size_t o = 0; o < outputs; ++o) y[o] += std::max(sum, 0.0) * read[o * channels + c];
    }
    return y;
  };
  const std::vector<double> before = output();
  EqualizedRegion region = region_of(made, bias, read, channels);
  REQUIRE(equalize({&region, 1}, {}));
  const std::vector<double> after = output();
  for (size_t o = 0; o < outputs; ++o) CHECK(after[o] == doctest::Approx(before[o]).epsilon(1e-5));
  float largest_made = 0, largest_read = 0;
  for (size_t i = 0; i < inputs; ++i) largest_made = std::max(largest_made, std::fabs(made[i]));
  for (size_t o = 0; o < outputs; ++o) largest_read = std::max(largest_read, std::fabs(read[o * channels]));
  CHECK(largest_made == doctest::Approx(largest_read));  // channel 0, whose bias is small beside its weights
}

TEST_CASE("kernels of convolutions are read along their second dimension") {
  std::vector<float> made = {9, 1}, bias, read = {1, 1, 4, 4, 1, 1, 4, 1};  // [2, 2, 2]
  EqualizedRegion region = region_of(made, bias, read, 2, 2);
  EqualizationOptions options;
  options.iterations = 1;
  REQUIRE(equalize({&region, 1}, options));
  CHECK(made == std::vector<float>{3, 2});
  CHECK(read == std::vector<float>{3, 3, 2, 2, 3, 3, 2, 0.5f});
}

TEST_CASE("equalization refuses what does not fit") {
  std::vector<float> made = {1, 2, 3}, bias, read = {1, 2};
  EqualizedRegion region = region_of(made, bias, read, 2);
  CHECK(code_of(equalize({&region, 1}, {})) == ErrorCode::shape_mismatch);
  made = {1, std::numeric_limits<float>::infinity()};
  region = region_of(made, bias, read, 2);
  CHECK(code_of(equalize({&region, 1}, {})) == ErrorCode::value_not_finite);
  region = region_of(read, bias, read, 0);
  CHECK(code_of(equalize({&region, 1}, {})) == ErrorCode::shape_mismatch);
}

TEST_CASE("bias correction restores the mean output that the change of the weights shifted") {
  const float weight[] = {1, 2, 3, 4}, quantized[] = {0, 2, 0, 5};
  const double sums[] = {2, 8};  // means 1 and 4
  std::vector<float> bias = {1, 1};
  correct_bias(weight, quantized, sums, 2, bias);
  CHECK(bias == std::vector<float>{2, 0});
}
