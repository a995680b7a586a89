// The expected error of a layer's output for other text than that of the calibration.
#include "algorithms/expected_error.h"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "random_values.h"

using namespace wasmquant;

namespace {

// 2 / tokens X^T X.
std::vector<float> mean_products_of(const std::vector<float>& x, size_t columns) {
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

// tr(D H' D^T) by the definition of H'; `uncorrelated`: with no correlations at all.
struct ExpectedTraces {
  double expected = 0, uncorrelated = 0;
};
ExpectedTraces expected_traces_of(const std::vector<float>& d, const std::vector<float>& h, size_t n, size_t rank,
                                  size_t tokens) {
  const double few = std::max(16.0 / static_cast<double>(tokens), 2.0 / static_cast<double>(rank));
  const double weight = std::min(1.0, few), leverage = static_cast<double>(rank) / static_cast<double>(tokens);
  const double share =
      std::min(1.0, 8.0 * static_cast<double>(rank) / static_cast<double>(n)) * (1 - leverage * leverage);
  double logarithms = 0;
  for (size_t j = 0; j < n; ++j) logarithms += std::log(double{h[j * n + j]}) / static_cast<double>(n);
  std::vector<double> squares(n);
  for (size_t j = 0; j < n; ++j)
    squares[j] = std::exp((1 - weight) * std::log(double{h[j * n + j]}) + weight * logarithms);
  ExpectedTraces out;
  for (size_t at = 0; at < d.size(); at += n)
    for (size_t i = 0; i < n; ++i) {
      for (size_t j = 0; j < n; ++j) {
        const double correlation = h[i * n + j] / std::sqrt(double{h[i * n + i]} * h[j * n + j]);
        out.expected +=
            d[at + i] * (i == j ? 1 : share * correlation) * std::sqrt(squares[i] * squares[j]) * double{d[at + j]};
      }
      out.uncorrelated += double{d[at + i]} * squares[i] * d[at + i];
    }
  return out;
}

// Tokens that are combinations of `rank` random ones.
std::vector<float> inputs_of_rank(RandomValues& random, size_t tokens, size_t columns, size_t rank) {
  const std::vector<float> basis = random.vector(rank * columns), parts = random.vector(tokens * rank);
  std::vector<float> x(tokens * columns);
  for (size_t t = 0; t < tokens; ++t)
    for (size_t r = 0; r < rank; ++r)
      for (size_t j = 0; j < columns; ++j) x[t * columns + j] += parts[t * rank + r] * basis[r * columns + j];
  return x;
}

}  // namespace

TEST_CASE("the expected error is tr(D H' D^T)") {
  RandomValues random(31);
  for (const size_t columns : {2, 31, 130, 200})
    for (const size_t rank : {size_t{1}, columns / 3, columns}) {
      if (rank == 0) continue;
      const size_t tokens = 4 * columns;
      const std::vector<float> h = mean_products_of(inputs_of_rank(random, tokens, columns, rank), columns);
      const ExpectedError expected(h, columns, tokens);
      // Of a dependent column a little may seem to be left in float32.
      CHECK_MESSAGE((expected.rank() >= rank && expected.rank() <= rank + rank / 8 + 1), "columns ", columns);
      CHECK(expected.live_columns() == columns);
      for (const size_t rows : {1, 63, 65}) {
        const std::vector<float> d = random.vector(rows * columns);
        const ExpectedTraces traces = expected_traces_of(d, h, columns, expected.rank(), tokens);
        CHECK(std::fabs(expected.of(d) - traces.expected) <= 1e-3 * traces.uncorrelated);
      }
    }
}

TEST_CASE("the expected error is the same bit for bit, found in steps or at once, over any split of the rows") {
  const size_t columns = 40, rows = 230;
  const std::vector<float> h = mean_products_of(RandomValues(21).inputs(300, columns), columns);
  const std::vector<float> d = RandomValues(22).vector(rows * columns);
  const ExpectedError whole(h, columns, 300);
  ExpectedError steps(h, columns, 300, ExpectedError::Unfinished{});
  ExpectedError other(h, columns, 300, ExpectedError::Unfinished{});
  other.find_factor(h);
  std::copy(other.factor().begin(), other.factor().end(), steps.factor().begin());
  steps.finish({});
  CHECK(steps.rank() == whole.rank());
  std::vector<double> sums(2 * rows);
  for (const auto& [begin, end] : {std::pair<size_t, size_t>{0, 7}, {7, 200}, {200, rows}})
    steps.sum_rows(std::span(d).subspan(begin * columns, (end - begin) * columns),
                   std::span(sums).subspan(2 * begin, 2 * (end - begin)));
  CHECK(steps.of_sums(sums) == whole.of(d));
}

TEST_CASE("tokens that span one direction each predict nothing about others") {
  RandomValues random(34);
  const size_t columns = 64;
  double before = 0;
  for (const size_t tokens : {8, 64, 70, 128, 1024}) {
    const std::vector<float> h = mean_products_of(random.vector(tokens * columns), columns);
    const ExpectedError expected(h, columns, tokens);
    const size_t rank = std::min(tokens, columns);
    CHECK((expected.rank() >= rank && expected.rank() <= rank + rank / 8));
    CHECK(expected.share() >= before);
    if (tokens <= columns) CHECK(expected.share() == 0);
    before = expected.share();
  }
  CHECK(before > 0.99);
}

TEST_CASE("scaling columns and dividing their inputs changes neither rank nor expected error") {
  RandomValues random(32);
  const size_t columns = 70;
  std::vector<float> divisors(columns);
  for (size_t j = 0; j < columns; ++j) divisors[j] = std::exp2(10 - static_cast<float>(j % 21));
  for (const size_t rank : {3, 40, 70}) {
    std::vector<float> x = inputs_of_rank(random, 300, columns, rank), d = random.vector(5 * columns);
    const ExpectedError before(mean_products_of(x, columns), columns, 300);
    const double error = before.of(d);
    for (size_t i = 0; i < x.size(); ++i) x[i] /= divisors[i % columns];
    for (size_t i = 0; i < d.size(); ++i) d[i] *= divisors[i % columns];
    const ExpectedError after(mean_products_of(x, columns), columns, 300, divisors);
    CHECK(after.rank() == before.rank());
    CHECK(after.of(d) == doctest::Approx(error).epsilon(1e-4));
  }
}

TEST_CASE("a dozen tokens do not say which features are large") {
  RandomValues random(35);
  const size_t columns = 40;
  const std::vector<float> d = random.vector(columns);
  for (const size_t tokens : {4, 12, 4000}) {
    std::vector<float> x = random.vector(tokens * columns);
    for (size_t i = 0; i < x.size(); ++i) x[i] *= i % columns == 7 ? 1000.0f : 1.0f;
    const ExpectedError expected(mean_products_of(x, columns), columns, tokens);
    std::vector<float> large(columns), small(columns);
    large[7] = small[8] = 1;
    const double ratio = expected.of(large) / expected.of(small);
    CHECK((tokens < 16 ? ratio == doctest::Approx(1) : ratio > 1e5));
  }
}

TEST_CASE("a repeated token is one direction, however often it comes; columns without input count for nothing") {
  RandomValues random(33);
  const size_t columns = 96;
  const std::vector<float> token = random.vector(columns);
  std::vector<float> x;
  for (size_t t = 0; t < 500; ++t)
    for (const float value : token) x.push_back(value * (1 + 1e-6f * static_cast<float>(t % 7)));
  CHECK(ExpectedError(mean_products_of(x, columns), columns, 500).rank() == 1);

  for (size_t i = 0; i < x.size(); ++i)
    if (i % columns % 3 == 0) x[i] = 0;
  const ExpectedError sparse(mean_products_of(x, columns), columns, 500);
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
