// Layers that differ in size, share keys and values, have inputs of their own, or several streams (Gemma 3n and 4).
#pragma once
#include "core/json.h"
#include "core/result.h"
#include "model/config/architecture.h"
#include "model/config/family_facts.h"

namespace wasmquant::model {

/// Widths of feed-forwards, one for each layer, of which the first is that of the model. Errors: config-invalid.
Status read_widths(const json::Array& widths, Architecture& out);

/// Sizes by layer, and widths of layers' own inputs; nothing if the family has neither. `is_sliding` is known. Errors: config-invalid for
/// sizes that no layer has, or a layer without one before it whose keys it could read.
Status read_layer_sizes(const json::Value& config, const FamilyFacts& facts, Architecture& out);

/// Whether they are those of a model.
bool sizes_hold_together(const Architecture& architecture) noexcept;

}  // namespace wasmquant::model
