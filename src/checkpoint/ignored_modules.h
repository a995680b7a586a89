// The modules of a loaded model that a quantized file leaves alone, as compressed-tensors' `ignore` lists them: exact
// names, and "re:" patterns that match from the beginning of a name.
#pragma once
#include "checkpoint/checkpoint_format.h"

namespace wasmquant {

/// Whether the layer's weight goes over as it is, or in 16 bits.
bool keeps_weight(const LayerOutcome& layer) noexcept;

/// Every Linear module that keeps its weight, under both of its names; towers and experts by a pattern each where all
/// of their layers do; heads of the family that have no tensor.
json::Array ignored_modules(const List<LayerOutcome>& layers, const families::ModelFamily& family);

}  // namespace wasmquant
