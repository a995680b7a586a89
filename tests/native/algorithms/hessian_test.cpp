// Hessians of inputs: their definition, bands of members of a team, and tokens held out.
#include "algorithms/hessian.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "algorithms/input_statistics.h"
#include "core/list.h"
#include "random_values.h"

using namespace wasmquant;

TEST_CASE("the Hessian is twice the mean outer product, divided by samples") {
  const size_t tokens = 300, columns = 21;
  const std::vector<float> x = RandomValues(1).inputs(tokens, columns);
  HessianAccumulator accumulator(columns);
  REQUIRE(accumulator.add(x, 4));
  const Result<std::vector<float>> h = std::move(accumulator).finish();
  REQUIRE(h);
  for (size_t i = 0; i < columns; ++i)
    for (size_t j = 0; j < columns; ++j) {
      double sum = 0, size = 0;
      for (size_t t = 0; t < tokens; ++t) {
        sum += double{x[t * columns + i]} * x[t * columns + j] / 2;
        size += std::fabs(double{x[t * columns + i]} * x[t * columns + j] / 2);
      }
      REQUIRE(std::fabs((*h)[i * columns + j] - sum) <= 1e-6 * size);
      REQUIRE((*h)[i * columns + j] == (*h)[j * columns + i]);
    }
}

TEST_CASE("the Hessian is the same bit for bit for any split of the rows into batches") {
  const size_t tokens = 1000, columns = 37;
  const std::vector<float> x = RandomValues(2).inputs(tokens, columns);
  std::vector<float> whole;
  for (const size_t batch : {tokens, size_t{1}, size_t{7}, size_t{128}, size_t{130}, size_t{500}}) {
    HessianAccumulator accumulator(columns);
    for (size_t t = 0; t < tokens; t += batch) {
      const size_t rows = std::min(batch, tokens - t);
      REQUIRE(accumulator.add(std::span(x).subspan(t * columns, rows * columns), rows));
    }
    Result<std::vector<float>> h = std::move(accumulator).finish();
    REQUIRE(h);
    if (whole.empty()) whole = *h;
    CHECK(*h == whole);
  }
}

TEST_CASE("the members of a team hold all rows of the sum between them, bit for bit") {
  const size_t tokens = 300;
  for (const size_t columns : {size_t{1}, size_t{5}, size_t{37}, size_t{200}}) {
    const std::vector<float> x = RandomValues(4).inputs(tokens, columns);
    HessianAccumulator alone(columns);
    REQUIRE(alone.add(x, tokens));
    const Result<std::vector<float>> whole = std::move(alone).finish();
    REQUIRE(whole);
    for (const size_t members : {size_t{2}, size_t{3}, size_t{8}}) {
      List<HessianAccumulator> team;
      for (size_t member = 0; member < members; ++member) {
        team.push_back(HessianAccumulator(columns, {member, members}));
        REQUIRE(team[member].add(x, tokens));
      }
      size_t rows = 0;
      for (size_t member = 0; member < members; ++member) {
        const std::span<float> own = team[member].band(member), there = team[0].band(member);
        rows += own.size() / columns;
        std::copy(own.begin(), own.end(), there.begin());
      }
      CHECK(rows == columns);
      const Result<std::vector<float>> joined = std::move(team[0]).finish();
      REQUIRE(joined);
      CHECK(*joined == *whole);
    }
  }
}

TEST_CASE("each member's share is whole steps, and the shares add up to all of the work") {
  for (const size_t count : {size_t{0}, size_t{1}, size_t{7}, size_t{64}, size_t{1001}})
    for (const size_t step : {size_t{1}, size_t{8}})
      for (const size_t members : {size_t{1}, size_t{2}, size_t{3}, size_t{16}}) {
        size_t end = 0;
        for (size_t member = 0; member < members; ++member) {
          const auto part = TeamShare{member, members}.of(count, step);
          CHECK(part.begin == end);
          CHECK((part.begin % step == 0 || part.count() == 0));
          CHECK(part.count() <= (count / step / members + 1) * step);
          end = part.end;
        }
        CHECK(end == count);
      }
}

TEST_CASE("the last quarter of each call's tokens is held out, and still counts in the full Hessian") {
  const size_t columns = 9;
  const std::vector<float> x = RandomValues(6).inputs(80, columns);
  InputStatistics both(columns, true, {}, true), whole(columns, true), last(columns, true);
  for (const auto& [begin, count] : {std::pair<size_t, size_t>{0, 40}, {40, 37}, {77, 3}}) {
    const std::span<const float> rows = std::span(x).subspan(begin * columns, count * columns);
    REQUIRE(both.add(rows));
    REQUIRE(whole.add(rows));
    if (count >= 4) REQUIRE(last.add(rows.subspan((count - count / 4) * columns)));
  }
  CHECK(both.held_out_tokens() == 19);
  CHECK(both.finish_held_out() == *last.finish_hessian());
  CHECK(*both.finish_hessian() == *whole.finish_hessian());
  CHECK(whole.finish_held_out().empty());
}

TEST_CASE("inputs that are not whole rows, not finite or missing are refused") {
  const float x[] = {1, 2, 3, std::numeric_limits<float>::infinity()};
  HessianAccumulator accumulator(2);
  const Status ragged = accumulator.add(std::span(x).first(3), 1), infinite = accumulator.add(x, 1);
  REQUIRE_FALSE(ragged);
  CHECK(ragged.error().code == ErrorCode::shape_mismatch);
  REQUIRE_FALSE(infinite);
  CHECK(infinite.error().code == ErrorCode::value_not_finite);
  CHECK(infinite.error().message == "input row 1, column 1 is NaN or infinite");
  const Result<std::vector<float>> h = std::move(accumulator).finish();
  REQUIRE_FALSE(h);
  CHECK(h.error().code == ErrorCode::state_invalid);
}
