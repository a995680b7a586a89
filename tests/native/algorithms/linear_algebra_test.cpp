// Products, Cholesky factors and inverses against their definitions in float64.
#include "algorithms/linear_algebra.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "random_values.h"

using namespace wasmquant;

namespace {

// Sizes around the tiles, blocks and panels.
constexpr size_t kSizes[] = {1, 2, 3, 4, 7, 8, 9, 31, 63, 64, 65, 127, 129, 200, 261};

// B B^T / n + I: positive definite, condition number of a few.
std::vector<float> positive_definite(size_t n) {
  const std::vector<float> b = RandomValues(static_cast<uint32_t>(n)).vector(n * n);
  std::vector<float> a(n * n);
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j < n; ++j) {
      double sum = i == j ? 1 : 0;
      for (size_t p = 0; p < n; ++p) sum += double{b[i * n + p]} * b[j * n + p] / static_cast<double>(n);
      a[i * n + j] = static_cast<float>(sum);
    }
  return a;
}

// R of positive_definite(n) = R^T R, with zeros below its diagonal.
std::vector<float> upper_factor(size_t n) {
  std::vector<float> r = positive_definite(n);
  REQUIRE(factor_cholesky(r, n));
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j < i; ++j) r[i * n + j] = 0;
  return r;
}

}  // namespace

TEST_CASE("a product of any shape, inside larger matrices, does not touch its surroundings") {
  RandomValues random(1);
  for (const size_t rows : {1, 3, 4, 5, 130})
    for (const size_t columns : {1, 7, 8, 9, 260})
      for (const size_t depth : {1, 2, 127, 128, 129, 300}) {
        const size_t a_stride = rows + 1, b_stride = columns + 2, c_stride = columns + 3;
        const std::vector<float> a = random.vector(depth * a_stride), b = random.vector(depth * b_stride);
        const std::vector<float> before = random.vector(rows * c_stride);
        std::vector<float> c = before;
        add_product(-1, {a.data(), a_stride}, {b.data(), b_stride}, depth, rows, columns, {c.data(), c_stride});
        bool agrees = true;
        for (size_t i = 0; i < rows; ++i)
          for (size_t j = 0; j < c_stride; ++j) {
            double expected = before[i * c_stride + j];
            for (size_t p = 0; j < columns && p < depth; ++p)
              expected -= double{a[p * a_stride + i]} * b[p * b_stride + j];
            agrees &= std::fabs(c[i * c_stride + j] - expected) <= (j < columns ? 2e-5 : 0);
          }
        CHECK_MESSAGE(agrees, rows, " x ", columns, ", depth ", depth);
      }
}

TEST_CASE("nothing to multiply changes nothing") {
  const float a[] = {2};
  float c[] = {1};
  add_product(1, {a, 1}, {a, 1}, 0, 1, 1, {c, 1});
  add_product(1, {a, 1}, {a, 1}, 1, 0, 1, {c, 1});
  add_product(1, {a, 1}, {a, 1}, 1, 1, 0, {c, 1});
  CHECK(c[0] == 1);
}

TEST_CASE("a product's rows and columns do not depend on the others, and deep products are sequences") {
  RandomValues random(2);
  const size_t depth = 300, rows = 150, columns = 270;
  const std::vector<float> a = random.vector(depth * rows), b = random.vector(depth * columns);
  std::vector<float> whole(rows * columns), pieces(rows * columns);
  add_product(1, {a.data(), rows}, {b.data(), columns}, depth, rows, columns, {whole.data(), columns});
  for (size_t p = 0; p < depth; p += kProductDepth)
    for (size_t i = 0; i < rows; i += 37)
      for (size_t j = 0; j < columns; j += 101)
        add_product(1, {a.data() + p * rows + i, rows}, {b.data() + p * columns + j, columns},
                    std::min(kProductDepth, depth - p), std::min<size_t>(37, rows - i),
                    std::min<size_t>(101, columns - j), {pieces.data() + i * columns + j, columns});
  CHECK(whole == pieces);
}

TEST_CASE("a symmetric product computes only the upper triangle and does not touch the lower one") {
  for (const size_t n : kSizes) {
    const size_t depth = 140;
    const std::vector<float> a = RandomValues(3).vector(depth * n);
    std::vector<float> full(n * n, 0.5f), upper = full;
    add_product(1, {a.data(), n}, {a.data(), n}, depth, n, n, {full.data(), n});
    add_symmetric_product(1, {a.data(), n}, depth, n, {upper.data(), n});
    bool agrees = true;
    for (size_t i = 0; i < n; ++i)
      for (size_t j = 0; j < n; ++j) agrees &= upper[i * n + j] == (j >= i ? full[i * n + j] : 0.5f);
    CHECK_MESSAGE(agrees, "n ", n);
  }
}

TEST_CASE("the Cholesky factor reproduces a random positive definite matrix; below the diagonal nothing changes") {
  for (const size_t n : kSizes) {
    const std::vector<float> a = positive_definite(n);
    std::vector<float> r = a;
    REQUIRE(factor_cholesky(r, n));
    double worst = 0;
    for (size_t i = 0; i < n; ++i) {
      CHECK(r[i * n + i] > 0);
      for (size_t j = i; j < n; ++j) {
        double sum = 0;
        for (size_t p = j; p < n; ++p) sum += double{r[i * n + p]} * r[j * n + p];
        worst = std::max(worst, std::fabs(sum - a[i * n + j]));
        if (j > i) REQUIRE(r[j * n + i] == a[j * n + i]);
      }
    }
    CHECK_MESSAGE(worst <= 4e-6, "n ", n, ", worst ", worst);
  }
}

TEST_CASE("a matrix that is not positive definite has no factor") {
  for (const size_t n : {1, 3, 65, 200})
    for (const size_t at : {size_t{0}, n / 2, n - 1})
      for (const float value : {0.0f, -1.0f, std::nanf(""), INFINITY}) {
        std::vector<float> a = positive_definite(n);
        a[at * n + at] = value;
        CHECK_FALSE(factor_cholesky(a, n));
      }
}

TEST_CASE("an upper triangular matrix times its inverse is the identity") {
  for (const size_t n : kSizes) {
    const std::vector<float> r = upper_factor(n);
    std::vector<float> v = r;
    invert_upper(v, n, 0, n);
    double worst = 0;
    for (size_t i = 0; i < n; ++i)
      for (size_t j = 0; j < n; ++j) {
        double sum = i == j ? -1 : 0;
        for (size_t p = i; p <= j; ++p) sum += double{r[i * n + p]} * v[p * n + j];
        worst = std::max(worst, std::fabs(sum));
        if (j < i) REQUIRE(v[i * n + j] == 0);
      }
    CHECK_MESSAGE(worst <= 2e-6, "n ", n, ", worst ", worst);
  }
}

TEST_CASE("columns of an inverse are the same in any range that they are found in") {
  for (const size_t n : {1, 64, 65, 200, 261, 449}) {
    const std::vector<float> r = upper_factor(n);
    std::vector<float> whole = r;
    invert_upper(whole, n, 0, n);
    for (const size_t step : {kInvertedStep, 3 * kInvertedStep})
      for (size_t first = 0; first < n; first += step) {
        const size_t end = std::min(n, first + step);
        std::vector<float> part = r;
        invert_upper(part, n, first, end);
        bool agrees = true;
        for (size_t i = 0; i < n; ++i)
          for (size_t j = first; j < end; ++j) agrees &= part[i * n + j] == whole[i * n + j];
        CHECK_MESSAGE(agrees, "n ", n, ", columns from ", first);
      }
  }
}
