// The short convolutions of a config.json (LFM2).
#pragma once
#include "core/json.h"
#include "core/result.h"
#include "model/config/architecture.h"

namespace wasmquant::model {

/// Beyond any model.
inline constexpr uint32_t kMaxConvolution = 256;

/// Which layers have one, how many tokens it sees, and the width of the feed-forward that these families adjust; nothing if the family has none.
/// Errors: config-invalid for numbers and lists that do not fit.
Status read_convolutions(const json::Value& config, Architecture& out);

}  // namespace wasmquant::model
