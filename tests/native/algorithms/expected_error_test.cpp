#include "algorithms/expected_error.h"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "random_values.h"

using namespace wasmquant;

namespace {

// 2 / tokens X^T X.
std::vector<float> hessian_of(const std::vector<float>& x, size_t columns) {
  const size_t tokens = x.size() / columns;
  std::vector<float> out(columns * columns);
  for (size_t i = 0; i < columns; ++i)
    for (size_t j = 0; j < columns; ++j) {
      double sum = 0;
      for (size_t t = 0; t < tokens; ++t) sum += double{x[t * columns + i]} * x[t * columns + j];
      out[i * columns + j] = static_cast<float>(2 * sum / static_cast<double>(tokens));
    }
  return out;
}

// tr(D H D^T), and sum H_jj |D_j|^2.
struct Traces {
  double correlated = 0, alone = 0;
};
Traces traces_of(const std::vector<float>& d, const std::vector<float>& h, size_t n) {
  Traces out;
  for (size_t at = 0; at < d.size(); at += n)
    for (size_t i = 0; i < n; ++i) {
      for (size_t j = 0; j < n; ++j) out.correlated += double{d[at + i]} * h[i * n + j] * d[at + j];
      out.alone += double{d[at + i]} * h[i * n + i] * d[at + i];
    }
  return out;
}

// Tokens that are combinations of `rank` random ones.
std::vector<float> inputs_of(RandomValues& random, size_t tokens, size_t columns, size_t rank) {
  const std::vector<float> basis = random.vector(rank * columns), parts = random.vector(tokens * rank);
  std::vector<float> x(tokens * columns);
  for (size_t t = 0; t < tokens; ++t)
    for (size_t r = 0; r < rank; ++r)
      for (size_t j = 0; j < columns; ++j) x[t * columns + j] += parts[t * rank + r] * basis[r * columns + j];
  return x;
}

}  // namespace

TEST_CASE("the expected error is tr(D H' D^T), H shrunk by the share of directions that are missing") {
  RandomValues random(31);
  for (const size_t columns : {1, 2, 31, 130, 200})
    for (const size_t rank : {size_t{1}, columns / 3, columns}) {
      if (rank == 0) continue;
      const std::vector<float> h = hessian_of(inputs_of(random, 4 * columns, columns, rank), columns);
      const size_t tokens = 4 * columns;
      const ExpectedError expected(h, columns, tokens);
      CHECK_MESSAGE(expected.rank() == rank, "columns ", columns);
      CHECK(expected.live_columns() == columns);
      const double leverage = static_cast<double>(rank) / static_cast<double>(tokens);
      const double share =
          std::min(1.0, 8.0 * static_cast<double>(rank) / static_cast<double>(columns)) * (1 - leverage * leverage);
      CHECK(expected.share() == doctest::Approx(share));
      for (const size_t rows : {1, 63, 65}) {
        const std::vector<float> d = random.vector(rows * columns);
        const Traces traces = traces_of(d, h, columns);
        const double exact = share * traces.correlated + (1 - share) * traces.alone;
        CHECK(std::fabs(expected.of(d) - exact) <= 1e-3 * exact + 1e-3 * share * traces.alone);
      }
    }
}

TEST_CASE("tokens that each show a direction of their own say nothing about others") {
  RandomValues random(34);
  const size_t columns = 64;
  double before = 0;
  for (const size_t tokens : {8, 64, 70, 128, 1024}) {
    const std::vector<float> h = hessian_of(random.vector(tokens * columns), columns);
    const ExpectedError expected(h, columns, tokens);
    CHECK(expected.rank() == std::min(tokens, columns));
    CHECK(expected.share() >= before);
    if (tokens <= columns) CHECK(expected.share() == 0);
    before = expected.share();
  }
  CHECK(before > 0.99);
}

TEST_CASE("scaling columns and dividing their inputs changes neither rank nor expected error") {
  RandomValues random(32);
  const size_t columns = 70;
  for (const size_t rank : {3, 40, 70}) {
    std::vector<float> x = inputs_of(random, 300, columns, rank), d = random.vector(5 * columns);
    const ExpectedError before(hessian_of(x, columns), columns, 300);
    const double error = before.of(d);
    for (size_t i = 0; i < x.size(); ++i) x[i] *= std::exp2(static_cast<float>(i % columns % 21) - 10);
    for (size_t i = 0; i < d.size(); ++i) d[i] *= std::exp2(10 - static_cast<float>(i % columns % 21));
    const ExpectedError after(hessian_of(x, columns), columns, 300);
    CHECK(after.rank() == before.rank());
    CHECK(after.of(d) == doctest::Approx(error).epsilon(1e-4));
  }
}

TEST_CASE("a repeated token is one direction, however often it comes; columns without input count for nothing") {
  RandomValues random(33);
  const size_t columns = 96;
  const std::vector<float> token = random.vector(columns);
  std::vector<float> x;
  for (size_t t = 0; t < 500; ++t)
    for (const float value : token) x.push_back(value * (1 + 1e-6f * static_cast<float>(t % 7)));
  CHECK(ExpectedError(hessian_of(x, columns), columns, 500).rank() == 1);

  for (size_t i = 0; i < x.size(); ++i)
    if (i % columns % 3 == 0) x[i] = 0;
  const ExpectedError sparse(hessian_of(x, columns), columns, 500);
  CHECK(sparse.live_columns() == 64);
  CHECK(sparse.rank() == 1);
  std::vector<float> d(columns);
  for (size_t j = 0; j < columns; j += 3) d[j] = 1e6f;
  CHECK(sparse.of(d) == 0);

  const ExpectedError none(std::vector<float>(columns * columns), columns, 500);
  CHECK(none.rank() == 0);
  CHECK(none.share() == 1);
  CHECK(none.of(d) == 0);
  CHECK(ExpectedError({}, 0, 0).of({}) == 0);
}
