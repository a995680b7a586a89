// The unquantized modules of a loaded model, as compressed-tensors' `ignore` lists them: exact names, and "re:"
// patterns that match from the start of a name.
#pragma once
#include "checkpoint/checkpoint_format.h"

namespace wasmquant {

/// Whether the layer's weight is copied or cast to 16 bits.
bool keeps_weight(const LayerOutcome& layer) noexcept;

/// Heads that classes of the family tie to the embedding: Linear modules of the loaded model without a tensor.
List<std::string_view> heads_without_tensor(const List<LayerOutcome>& layers, const families::ModelFamily& family);

/// Every unquantized Linear module under both of its names; towers and experts by one pattern each if all of their
/// layers are unquantized; heads of the family that have no tensor.
json::Array ignored_modules(const List<LayerOutcome>& layers, const families::ModelFamily& family);

}  // namespace wasmquant
