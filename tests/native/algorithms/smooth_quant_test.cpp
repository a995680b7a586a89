// SmoothQuant: scales worked out by hand, and what must not change: the layer's output.
#include "algorithms/scaling/smooth_quant.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "random_values.h"

using namespace wasmquant;

namespace {

std::vector<double> outputs_of(const std::vector<float>& x, const std::vector<float>& weight, size_t columns) {
  const size_t tokens = x.size() / columns, rows = weight.size() / columns;
  std::vector<double> y(tokens * rows);
  for (size_t t = 0; t < tokens; ++t)
    for (size_t i = 0; i < rows; ++i)
      for (size_t j = 0; j < columns; ++j) y[t * rows + i] += double{x[t * columns + j]} * weight[i * columns + j];
  return y;
}

}  // namespace

TEST_CASE("scales worked by hand: alpha splits the range, the clamps hold") {
  const float activation[] = {16, 1, 0, 9}, weight[] = {4, 4, 1, 0};
  float scales[4];
  REQUIRE(smooth_scales(activation, weight, {0.5, 1e-3}, scales));
  CHECK(scales[0] == 2);
  CHECK(scales[1] == 0.5f);
  CHECK(scales[2] == 1e-3f);                                 // no activation: scale_clamp_min
  CHECK(scales[3] == doctest::Approx(3 / std::sqrt(1e-5)));  // no weight: w_j is 1e-5
  REQUIRE(smooth_scales(activation, weight, {1.0, 1e-3}, scales));
  CHECK(scales[0] == 16);
  CHECK(scales[3] == 9);
  REQUIRE(smooth_scales(activation, weight, {0.0, 1e-3}, scales));
  CHECK(scales[0] == 0.25f);
  CHECK(scales[2] == 1);
}

TEST_CASE("scales without clamps do not touch features that have nothing to balance") {
  const float activation[] = {16, 0, 4, 1e-4f}, weight[] = {4, 4, 1e-10f, 1e-6f};
  float scales[4];
  REQUIRE(smooth_scales(activation, weight, {0.5, 0, 0, 1e-9}, scales));
  CHECK(scales[0] == 2);
  CHECK(scales[1] == 1);
  CHECK(scales[2] == 1);
  CHECK(scales[3] == doctest::Approx(10));
}

TEST_CASE("ranges accumulate over rows, tiles and layers") {
  float max[] = {0, 0};
  const float first[] = {1, -2, -3, 1}, second[] = {0, -5};
  REQUIRE(accumulate_column_absmax(first, max));
  REQUIRE(accumulate_column_absmax(second, max));
  CHECK(max[0] == 3);
  CHECK(max[1] == 5);
}

TEST_CASE("impossible sizes and values are errors, and change nothing") {
  float max[] = {1, 1};
  const float three[] = {9, 9, 9}, bad[] = {9, 9, 9, std::numeric_limits<float>::quiet_NaN()};
  const Status ragged = accumulate_column_absmax(three, max), not_finite = accumulate_column_absmax(bad, max);
  REQUIRE_FALSE(ragged);
  CHECK(ragged.error().code == ErrorCode::shape_mismatch);
  REQUIRE_FALSE(not_finite);
  CHECK(not_finite.error().message == "row 1, column 1 is NaN or infinite");
  CHECK(max[0] == 1);
  float scales[2];
  CHECK_FALSE(smooth_scales(three, max, {}, scales));
  const float infinite[] = {1, std::numeric_limits<float>::infinity()};
  CHECK_FALSE(smooth_scales(infinite, max, {}, scales));
  CHECK_FALSE(share_head_scales(scales, 2, 2, scales));
}

TEST_CASE("the output of norm and linear layer stays, for any alpha") {
  const size_t tokens = 20, columns = 24, rows = 10;
  RandomValues random(7);
  const std::vector<float> normed = random.inputs(tokens, columns), weight = random.vector(rows * columns);
  const std::vector<float> norm = random.vector(columns);
  const auto inputs_of = [&](const std::vector<float>& factors, float offset) {
    std::vector<float> x = normed;
    for (size_t i = 0; i < x.size(); ++i) x[i] *= factors[i % columns] + offset;
    return x;
  };
  for (const float offset : {0.0f, 1.0f})
    for (const double alpha : {0.0, 0.5, 0.8, 1.0}) {
      const std::vector<float> x = inputs_of(norm, offset);
      std::vector<float> a(columns), w(columns), scales(columns);
      REQUIRE(accumulate_column_absmax(x, a));
      REQUIRE(accumulate_column_absmax(weight, w));
      REQUIRE(smooth_scales(a, w, {alpha, 1e-3}, scales));
      std::vector<float> smooth_weight = weight, smooth_norm = norm;
      scale_columns(smooth_weight, scales);
      if (offset == 1)
        divide_offset_norm(smooth_norm, scales);
      else
        divide_rows(smooth_norm, 1, scales);
      const std::vector<double> before = outputs_of(x, weight, columns),
                                after = outputs_of(inputs_of(smooth_norm, offset), smooth_weight, columns);
      double worst = 0;
      for (size_t i = 0; i < before.size(); ++i) worst = std::max(worst, std::fabs(before[i] - after[i]));
      CHECK(worst < 1e-4);
    }
}

TEST_CASE("rows of a linear layer are divided, each by its own scale") {
  std::vector<float> weight = {2, 4, 6, 9, 12, 15};
  divide_rows(weight, 3, std::vector<float>{2, 3});
  CHECK(weight == std::vector<float>{1, 2, 3, 3, 4, 5});
}

TEST_CASE("heads that read one head of values share its scales") {
  // kv_heads 2, repeats 2, head_size 2
  std::vector<float> scales = {1, 8, 3, 4, 5, 6, 7, 2}, head_scales(4);
  REQUIRE(share_head_scales(scales, 2, 2, head_scales));
  CHECK(scales == std::vector<float>{3, 8, 3, 8, 7, 6, 7, 6});
  CHECK(head_scales == std::vector<float>{3, 8, 7, 6});
}
