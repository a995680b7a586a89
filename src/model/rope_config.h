// The rotary parameters of a config.json: `rope_parameters` (transformers 5), or `rope_theta` and `rope_scaling`.
#pragma once
#include "core/json.h"
#include "core/result.h"
#include "model/architecture.h"

namespace wasmquant::model {

/// Of full and of sliding layers; the same where the config does not tell them apart.
/// Errors: not-implemented for rotations other than default, linear, llama3 and, up to the trained length, dynamic.
Status read_rope(const json::Value& config, Rope& full, Rope& sliding);

}  // namespace wasmquant::model
