// Names shared by the parser and the writer of the aihwkit dialect (spec 1.1).
#pragma once
#include "config/spec/spec.h"

namespace wasmquant::config {

inline constexpr char kRangeEstimators[] = "current_minmax|allminmax|running_minmax|MSE|cross_entropy";
/// In the order of kRangeEstimators.
enum class RangeEstimator : uint8_t { current_minmax, allminmax, running_minmax, mse, cross_entropy };
/// In the order of SearchMethod.
inline constexpr char kOptMethods[] = "grid|golden_section";

}  // namespace wasmquant::config
