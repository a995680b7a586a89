// The rotary parameters of a config.json: `rope_parameters` (transformers 5), or `rope_theta` and `rope_scaling`.
#pragma once
#include "core/json.h"
#include "core/result.h"
#include "model/config/architecture.h"
#include "model/config/family_facts.h"

namespace wasmquant::model {

/// Those of full and sliding layers, equal if the config has one set. Errors: not-implemented for RoPE scaling types other than default,
/// linear, llama3, yarn, longrope and, up to the trained length, dynamic; config-invalid for factors that do not fit a head.
Status read_rope(const json::Value& config, const FamilyFacts& facts, Architecture& out);

}  // namespace wasmquant::model
