// Factors of the products of a block's linear layers (Falcon-H1).
#pragma once
#include "core/json.h"
#include "core/result.h"
#include "model/config/architecture.h"

namespace wasmquant::model {

/// Of Architecture::factors: the linear layers of a block, and the five parts of what a state space projects.
inline constexpr size_t kProducts = static_cast<size_t>(ModelPart::layer_out) + 1, kFactors = kProducts + 5;

/// Errors: config-invalid at a factor that is no finite number.
Status read_factors(const json::Value& config, Architecture& out);

}  // namespace wasmquant::model
