#include "algorithms/rounding/error_feedback.h"

#include <doctest/doctest.h>

#include <cmath>
#include <utility>
#include <vector>

#include "algorithms/hessian.h"
#include "random_values.h"

using namespace wasmquant;

namespace {

std::vector<float> hessian_of(const std::vector<float>& x, size_t columns) {
  HessianAccumulator accumulator(columns);
  REQUIRE(accumulator.add(x, 1));
  Result<std::vector<float>> h = std::move(accumulator).finish();
  REQUIRE(h);
  return std::move(*h);
}

// max |H' U^T U - I| with H' the Hessian in the feedback's order plus `damping` on its diagonal.
double distance_from_inverse(const std::vector<float>& h, const ErrorFeedback& feedback, double damping) {
  const size_t n = feedback.columns();
  const std::vector<float>& u = feedback.factor;
  std::vector<double> inverse(n * n);
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j < n; ++j)
      for (size_t p = 0; p <= std::min(i, j); ++p) inverse[i * n + j] += double{u[p * n + i]} * u[p * n + j];
  double worst = 0;
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j < n; ++j) {
      double sum = i == j ? -1 : 0;
      for (size_t p = 0; p < n; ++p)
        sum += (h[feedback.order[i] * n + feedback.order[p]] + (i == p ? damping : 0)) * inverse[p * n + j];
      worst = std::max(worst, std::fabs(sum));
    }
  return worst;
}

}  // namespace

TEST_CASE("U^T U is the inverse of the damped Hessian, in either order") {
  const size_t n = 150;
  const std::vector<float> h = hessian_of(RandomValues(1).inputs(400, n), n);
  double mean = 0;
  for (size_t i = 0; i < n; ++i) mean += h[i * n + i] / static_cast<double>(n);
  for (const bool desc_act : {false, true}) {
    const Result<ErrorFeedback> feedback = error_feedback_of(h, n, 0.01, desc_act);
    REQUIRE(feedback);
    CHECK(distance_from_inverse(h, *feedback, 0.01 * mean) < 1e-3);
    for (size_t i = 0; i < n; ++i)
      for (size_t j = 0; j < i; ++j) REQUIRE(feedback->factor[i * n + j] == 0);
  }
}

TEST_CASE("desc_act orders by the diagonal, equal ones by index; dead columns count as 1") {
  const std::vector<float> h = {2, 0, 0,      0, 0, /**/ 0, 3, 0,      0, 0, /**/ 0, 0,   0,
                                0, 0, /**/ 0, 0, 0, 3,      0, /**/ 0, 0, 0, 0,      0.5f};
  const Result<ErrorFeedback> feedback = error_feedback_of(h, 5, 0, true);
  REQUIRE(feedback);
  CHECK(feedback->order == std::vector<uint32_t>{1, 3, 0, 2, 4});
  CHECK(feedback->dead == std::vector<uint32_t>{2});
  for (size_t i = 0; i < 5; ++i) {
    const double diagonal = feedback->order[i] == 2 ? 1 : h[feedback->order[i] * 6];
    CHECK(feedback->factor[i * 6] == doctest::Approx(1 / std::sqrt(diagonal)));
  }
  const Result<ErrorFeedback> in_order = error_feedback_of(h, 5, 0, false);
  REQUIRE(in_order);
  CHECK(in_order->order == std::vector<uint32_t>{0, 1, 2, 3, 4});
}

TEST_CASE("groups of columns stay together, ordered by their largest input, a short one last") {
  const size_t n = 8;
  const float diagonal[n] = {1, 4, 2, 2, 9, 3, 100, 200};  // groups of three: {1, 4, 2}, {2, 9, 3}, a short one
  std::vector<float> h(n * n);
  for (size_t i = 0; i < n; ++i) h[i * n + i] = diagonal[i];
  const Result<ErrorFeedback> feedback = error_feedback_of(h, n, 0, {true, 3});
  REQUIRE(feedback);
  CHECK(feedback->order == std::vector<uint32_t>{4, 5, 3, 1, 2, 0, 7, 6});
  for (size_t i = 0; i < n; ++i)
    CHECK(feedback->factor[i * (n + 1)] == doctest::Approx(1 / std::sqrt(diagonal[feedback->order[i]])));
  const Result<ErrorFeedback> unfinished = factor_hessian(h, n, 0, {true, 3}, false);
  REQUIRE(unfinished);
  CHECK(unfinished->order == feedback->order);
  CHECK(unfinished->factor.size() == feedback->factor.size());
}

TEST_CASE("a Hessian that damping does not make positive definite gets more, up to five times") {
  // Eigenvalues 1 + c and 1 - c; the first extra is 1e-6, the fifth 1e-2.
  const auto with_correlation = [](float c) { return error_feedback_of({1, c, c, 1}, 2, 0, false); };
  CHECK(with_correlation(0.5f));
  const Result<ErrorFeedback> rescued = with_correlation(1.005f);
  REQUIRE(rescued);
  CHECK(rescued->factor[3] == doctest::Approx(1 / std::sqrt(1.01)).epsilon(1e-5));
  const Result<ErrorFeedback> hopeless = with_correlation(1.02f);
  REQUIRE_FALSE(hopeless);
  CHECK(hopeless.error().code == ErrorCode::argument_invalid);
}

TEST_CASE("impossible Hessians are refused") {
  const Result<ErrorFeedback> ragged = error_feedback_of({1, 0, 0}, 2, 0.01, false);
  REQUIRE_FALSE(ragged);
  CHECK(ragged.error().code == ErrorCode::shape_mismatch);
  const Result<ErrorFeedback> infinite = error_feedback_of({1, 0, 0, INFINITY}, 2, 0.01, false);
  REQUIRE_FALSE(infinite);
  CHECK(infinite.error().message == "column 1 of the Hessian is NaN or infinite");
  const Result<ErrorFeedback> empty = error_feedback_of({}, 0, 0.01, true);
  REQUIRE(empty);
  CHECK(empty->columns() == 0);
}
