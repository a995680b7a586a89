#include "algorithms/scaling/batch_norm.h"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "random_values.h"

using namespace wasmquant;

TEST_CASE("a folded norm gives the same output") {
  RandomValues random(6);
  const size_t channels = 6, columns = 4;
  std::vector<float> weight = random.vector(channels * columns), bias = random.vector(channels), variance(channels);
  const std::vector<float> x = random.vector(columns), gamma = random.vector(channels), beta = random.vector(channels),
                           mean = random.vector(channels);
  for (float& v : variance) v = 0.5f + std::fabs(random.next());
  const auto outputs = [&] {
    std::vector<double> y(bias.begin(), bias.end());
    for (size_t i = 0; i < weight.size(); ++i) y[i / columns] += double{weight[i]} * x[i % columns];
    return y;
  };
  std::vector<double> expected = outputs();
  for (size_t c = 0; c < channels; ++c)
    expected[c] = (expected[c] - mean[c]) / std::sqrt(variance[c] + 1e-5) * gamma[c] + beta[c];
  REQUIRE(fold_batch_norm({gamma, beta, mean, variance}, weight, bias));
  const std::vector<double> found = outputs();
  for (size_t c = 0; c < channels; ++c) CHECK(found[c] == doctest::Approx(expected[c]).epsilon(1e-5));
}

TEST_CASE("norms without weight and bias, and norms that cannot be folded") {
  std::vector<float> weight = {2, 4}, bias = {1};
  const float mean[] = {1}, variance[] = {4}, none[] = {0}, two[] = {1, 1};
  REQUIRE(fold_batch_norm({{}, {}, mean, variance, 0}, weight, bias));
  CHECK(weight == std::vector<float>{1, 2});
  CHECK(bias[0] == 0);
  const auto code_of = [](const Status& status) { return status ? ErrorCode::json_invalid : status.error().code; };
  CHECK(code_of(fold_batch_norm({{}, {}, mean, none, 0}, weight, bias)) == ErrorCode::value_not_finite);
  CHECK(code_of(fold_batch_norm({{}, {}, two, variance, 0}, weight, bias)) == ErrorCode::shape_mismatch);
  CHECK(weight == std::vector<float>{1, 2});
}
