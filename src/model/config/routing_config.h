// The mixture of experts of a config.json.
#pragma once
#include "core/json.h"
#include "core/result.h"
#include "model/config/architecture.h"
#include "model/config/family_facts.h"

namespace wasmquant::model {

/// Beyond any model; a header can claim more in a file without data.
inline constexpr uint32_t kMaxExperts = 4096;

/// Which layers have experts, and how tokens are sent to them; nothing if the family has none. Errors: config-invalid for numbers that do not
/// fit each other.
Status read_routing(const json::Value& config, const FamilyFacts& facts, Architecture& out);

}  // namespace wasmquant::model
