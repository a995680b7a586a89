// How a manifest says that numbers agree:
//   exact                        every bit, NaN equals NaN
//   value (sign of zero free)    the same, but -0 equals +0
//   rtol R, atol A, both         |a - e| <= A + R * |e|; A may be followed by "*max|x|", the largest magnitude of input
//   x
//   at least P% of entries within A[, and output error <= params.loss * F]
//                                |a - e| <= A for so many; the op's output error against the reference's
//   errors <one of these>; max must be a candidate with error <= min*(1+R)
//                                a search among candidates: where errors nearly tie, any of the best will do
#pragma once
#include <optional>
#include <string>

#include "golden_case.h"

namespace conformance {

struct Comparison {
  bool exact = true;
  bool sign_of_zero = true;
  double relative = 0, absolute = 0, absolute_of_max = 0;
  double share = 1;                       // of the entries that have to agree
  double loss_factor = 0;                 // output error allowed, in units of params.loss; 0: not compared
  std::optional<double> candidate_slack;  // R of the last form; the rest is for the role `errors`
};
/// Nothing when the text says more than the forms above.
std::optional<Comparison> comparison_named(const std::string& text);

/// The first difference in words, or nothing. `max_input` is max|x|.
std::optional<std::string> difference(const Comparison& comparison, const Produced& produced, const Tensor& expected,
                                      double max_input);

/// The same for the output error, `loss` being params.loss.
std::optional<std::string> loss_difference(const Comparison& comparison, const Produced& produced, double loss);

/// The same for role `max` of a search: what is wrong with the library's choice by the expected errors, or nothing.
std::optional<std::string> choice_difference(double slack, const Outputs& outputs, const Tensor& expected_max,
                                             const Tensor& expected_errors);

}  // namespace conformance
