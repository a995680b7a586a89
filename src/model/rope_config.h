// The rotary parameters of a config.json: `rope_parameters` (transformers 5), or `rope_theta` and `rope_scaling`.
#pragma once
#include "core/json.h"
#include "core/result.h"
#include "model/architecture.h"

namespace wasmquant::model {

/// For full and sliding layers; equal if the config has one set. Errors: not-implemented for RoPE scaling types other
/// than default, linear, llama3 and, up to the trained length, dynamic.
Status read_rope(const json::Value& config, Rope& full, Rope& sliding);

}  // namespace wasmquant::model
