// The width of feed-forwards in models with short convolutions (LFM2).
#pragma once
#include "core/json.h"
#include "core/result.h"
#include "model/config/architecture.h"

namespace wasmquant::model {

/// As these families adjust it; nothing for other ones. Errors: config-invalid for an impossible width.
Status adjust_width(const json::Value& config, Architecture& out);

}  // namespace wasmquant::model
