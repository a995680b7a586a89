// Words and numbers that the parser and the writer of aihwkit's dialect share (spec 1.1, 1.4).
#pragma once
#include "config/dialect_numbers.h"

namespace wasmquant::config {

/// In the order of RangeEstimator, from current_minmax.
inline constexpr char kRangeEstimators[] = "current_minmax|allminmax|running_minmax|MSE|cross_entropy";
/// In the order of RangeSearch, from grid.
inline constexpr char kOptMethods[] = "grid|golden_section";

/// The choices that every spec of aihwkit makes; the estimator's are left as they are.
void set_aihwkit_numbers(DialectNumbers& numbers, bool symmetric) noexcept;

}  // namespace wasmquant::config
