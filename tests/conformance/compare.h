// How a manifest says that numbers agree:
//   exact                        every bit, NaN equals NaN
//   value (sign of zero free)    the same, but -0 equals +0
//   rtol R, atol A, both         |a - e| <= A + R * |e|; A may be followed by "*max|x|", the largest magnitude of input
//   x
#pragma once
#include <optional>
#include <string>

#include "golden_case.h"

namespace conformance {

struct Comparison {
  bool exact = true;
  bool sign_of_zero = true;
  double relative = 0, absolute = 0, absolute_of_max = 0;
};
/// Nothing when the text says more than the forms above.
std::optional<Comparison> comparison_named(const std::string& text);

/// The first difference in words, or nothing. `max_input` is max|x|.
std::optional<std::string> difference(const Comparison& comparison, const Produced& produced, const Tensor& expected,
                                      double max_input);

}  // namespace conformance
