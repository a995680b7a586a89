// What mixes tokens in the layers of a config.json that are no attention: short convolutions, gated delta nets, Mamba.
#pragma once
#include "core/json.h"
#include "core/result.h"
#include "model/config/architecture.h"
#include "model/config/family_facts.h"

namespace wasmquant::model {

/// Beyond any model.
inline constexpr uint32_t kMaxConvolution = 256;

/// Which layers have what, and its sizes; nothing if all attend. Errors: config-invalid for numbers and lists that do not fit.
Status read_mixers(const json::Value& config, const FamilyFacts& facts, Architecture& out);

/// Whether no layer attends.
bool all_recur(const Architecture& architecture) noexcept;

/// Whether the sizes are those of a model.
bool mixers_hold_together(const Architecture& architecture) noexcept;

}  // namespace wasmquant::model
