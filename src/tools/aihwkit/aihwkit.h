// Names shared by the parser and the writer of the aihwkit dialect (spec 1.1).
#pragma once
#include <string_view>

#include "config/dialects/dialects.h"
#include "config/spec/spec.h"

namespace wasmquant::config {

inline constexpr char kRangeEstimators[] = "current_minmax|allminmax|running_minmax|MSE|cross_entropy";
/// In the order of kRangeEstimators.
enum class RangeEstimator : uint8_t { current_minmax, allminmax, running_minmax, mse, cross_entropy };
/// In the order of SearchMethod.
inline constexpr char kOptMethods[] = "grid|golden_section";

json::Value write_aihwkit(DialectConversion& conversion);

/// Whether an entry may name this class: one of aihwkit's own quantized modules, or another class of layers.
bool is_aihwkit_class(std::string_view type) noexcept;

}  // namespace wasmquant::config
