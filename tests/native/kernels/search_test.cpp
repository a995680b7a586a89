// Search kernels on every instruction set, against the oracles and their definitions.
#include "kernels/search.h"

#include "kernels/kernels.h"
#include "kernels/reference/reference_search.h"
#include "kernels/variants.h"

namespace wasmquant::kernels {
namespace {

struct Table {
  explicit Table(size_t count) : scale(count), inverse(count), low(count), high(count) {
    for (size_t i = 0; i < count; ++i) {
      scale[i] = (i % 3 == 1 ? -0.01f : 0.01f) * static_cast<float>(i + 1);
      inverse[i] = 1 / scale[i];
      low[i] = -8.0f - static_cast<float>(i % 7);
      high[i] = low[i] + 15;
    }
  }
  SearchGrids grids() const { return {scale.data(), inverse.data(), low.data(), high.data(), scale.size()}; }
  std::vector<float> scale, inverse, low, high;
};

std::vector<float> small_values(size_t count, uint32_t salt) {
  std::vector<float> x = test_values(count, Content::finite, salt);
  for (float& v : x) v = std::fmod(v, 2.0f);
  return x;
}

}  // namespace

TEST_CASE("errors of many grids equal their oracle to the last bit, with and without weights") {
  for (const size_t count : {size_t{16}, size_t{48}, size_t{112}}) {
    const Table table(count);
    for_each_arch_and_length([&](size_t n, size_t offset) {
      if (n > 200 && offset != 0) return;
      const std::vector<float> x = small_values(n + offset, static_cast<uint32_t>(n));
      std::vector<float> weights = small_values(n + offset, 9);
      for (float& w : weights) w = std::fabs(w);
      const std::span<const float> run = std::span(x).subspan(offset);
      for (const float* w : {static_cast<const float*>(nullptr), static_cast<const float*>(weights.data() + offset)})
        check_same<float>(
            count, offset, [&](float* errors) { search_errors(run, w, table.grids(), errors); },
            [&](float* errors) { reference::search_errors(run, w, table.grids(), errors); });
    });
  }
}

TEST_CASE("errors of a grid are those of fake_quantize_int") {
  const Table table(16);
  const std::vector<float> x = small_values(300, 3);
  std::vector<float> errors(16), y(x.size());
  search_errors(x, nullptr, table.grids(), errors.data());
  for (size_t c = 0; c < errors.size(); ++c) {
    const float zero_point = -8 - table.low[c];
    const Affine grid{table.scale[c], table.inverse[c], zero_point, -8, 7};
    fake_quantize_int(x, &grid, x.size(), RoundMethod::half_even, y.data());
    double sum = 0;
    for (size_t i = 0; i < x.size(); ++i) sum += std::pow(static_cast<double>(x[i]) - static_cast<double>(y[i]), 2);
    CHECK(errors[c] == doctest::Approx(sum).epsilon(1e-5));
  }
}

TEST_CASE("least-squares sums equal their oracle to the last bit, with and without weights") {
  for (const StepGrid& grid : {StepGrid{0.21f, 1 / 0.21f, -4, 3}, StepGrid{-0.4f, -1 / 0.4f, -2, 1},
                               StepGrid{0.3f, 1 / 0.3f, -1, 2}, StepGrid{0.01f, 100, -128, 127}})
    for_each_arch_and_length([&](size_t n, size_t offset) {
      if (n > 200 && offset != 0) return;
      const std::vector<float> x = small_values(n + offset, static_cast<uint32_t>(n));
      std::vector<float> weights = small_values(n + offset, 9);
      for (float& w : weights) w = std::fabs(w);
      const std::span<const float> run = std::span(x).subspan(offset);
      for (const float* w : {static_cast<const float*>(nullptr), static_cast<const float*>(weights.data() + offset)}) {
        const LeastSquaresSums found = least_squares(run, w, grid), expected = reference::least_squares(run, w, grid);
        REQUIRE(std::memcmp(&found, &expected, sizeof found) == 0);
      }
    });
}

TEST_CASE("least-squares sums match their definition") {
  std::vector<float> x = small_values(2500, 8), weights = small_values(2500, 5);
  for (float& w : weights) w = std::fabs(w);
  const StepGrid grid{0.31f, 1 / 0.31f, -4, 3};
  for (const float* w : {static_cast<const float*>(nullptr), static_cast<const float*>(weights.data())}) {
    double loss = 0, cross = 0, squares = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const double weight = w != nullptr ? w[i] : 1.0f;
      const double q = std::nearbyint(std::fmin(std::fmax(x[i] * grid.inverse, grid.low), grid.high));
      loss += weight * std::pow(x[i] - q * static_cast<double>(grid.scale), 2);
      cross += weight * q * x[i];
      squares += weight * q * q;
    }
    const LeastSquaresSums sums = least_squares(x, w, grid);
    CHECK(sums.loss == doctest::Approx(loss).epsilon(1e-5));
    CHECK(sums.cross == doctest::Approx(cross).epsilon(1e-5));
    CHECK(sums.squares == doctest::Approx(squares).epsilon(1e-5));
  }
}

TEST_CASE("half-quadratic sums equal their oracle to the last bit") {
  for (const RoundMethod round : {RoundMethod::half_even, RoundMethod::floor})
    for (const float zero_point : {0.0f, 6.3f})
      for_each_arch_and_length([&](size_t n, size_t offset) {
        if (n > 200 && offset != 0) return;
        const std::vector<float> x = small_values(n + offset, static_cast<uint32_t>(n));
        const std::span<const float> run = std::span(x).subspan(offset);
        const HalfQuadratic at{0.21f, 1 / 0.21f, zero_point, 0, 15, round, -0.3f, 0.02f};
        const HalfQuadraticSums found = half_quadratic(run, at), expected = reference::half_quadratic(run, at);
        REQUIRE(std::memcmp(&found, &expected, sizeof found) == 0);
      });
}

TEST_CASE("half-quadratic sums match their definition") {
  const std::vector<float> x = small_values(500, 8);
  for (const float p : {0.5f, 0.7f, 0.0f}) {
    const HalfQuadratic at{0.21f, 1 / 0.21f, 6.3f, 0, 15, RoundMethod::half_even, p - 1, 0.02f};
    double loss = 0, zero = 0, cross = 0, squares = 0;
    for (const float v : x) {
      const double q = std::nearbyint(std::fmin(std::fmax(v * at.inverse + at.zero_point, 0.0f), 15.0f));
      const double steps = q - static_cast<double>(at.zero_point), d = v - steps * static_cast<double>(at.scale);
      loss += std::pow(std::fabs(d), p);
      const double shrunk = std::fmax(std::fabs(d) - 0.02 * std::pow(std::fabs(d), p - 1), 0.0);
      const double target = v - std::copysign(shrunk, d);
      zero += q - target * static_cast<double>(at.inverse);
      cross += steps * target;
      squares += steps * steps;
    }
    const HalfQuadraticSums sums = half_quadratic(x, at);
    CHECK(sums.loss == doctest::Approx(loss).epsilon(1e-5));
    CHECK(sums.zero == doctest::Approx(zero).epsilon(1e-4));
    CHECK(sums.cross == doctest::Approx(cross).epsilon(1e-5));
    CHECK(sums.squares == doctest::Approx(squares).epsilon(1e-5));
  }
  const std::vector<float> exact(40, 0.0f);
  CHECK(half_quadratic(exact, {1, 1, 0, -8, 7, RoundMethod::half_even, -0.3f, 0.1f}).loss == 0);
}

TEST_CASE("bins equal their oracle, ends and specials included") {
  for (const bool of_magnitudes : {false, true})
    for (const Content content : {Content::finite, Content::with_specials})
      for_each_arch_and_length([&](size_t n, size_t offset) {
        std::vector<float> x = test_values(n + offset, content, static_cast<uint32_t>(n));
        for (size_t i = 0; i < x.size(); i += 5) x[i] = i % 2 == 0 ? 0.0f : -0.0f;
        for (size_t i = 3; i < x.size(); i += 9) x[i] = -150.0f + static_cast<float>(i % 300);  // edges of bins
        const std::span<const float> run = std::span(x).subspan(offset);
        const Bins rule{of_magnitudes ? 0.0 : -150.0, 1.0, 299, of_magnitudes};
        std::vector<uint32_t> bins(n + 1, 77), expected(n + 1, 77);
        const Binned found = find_bins(run, rule, bins.data());
        const Binned wanted = reference::find_bins(run, rule, expected.data());
        REQUIRE(found.zeros == wanted.zeros);
        REQUIRE(found.all_finite == wanted.all_finite);
        REQUIRE(bins[n] == 77);
        if (found.all_finite) REQUIRE(bins == expected);
      });
}

}  // namespace wasmquant::kernels
