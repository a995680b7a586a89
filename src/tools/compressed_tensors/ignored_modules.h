// The unquantized modules of a loaded model, as compressed-tensors' `ignore` lists them: exact names, and "re:"
// patterns that match from the start of a name.
#pragma once
#include "checkpoint/checkpoint_format.h"

namespace wasmquant {

/// Every unquantized Linear module under both of its names; towers and experts by one pattern each if all of their
/// layers are unquantized; heads of the family that have no tensor.
json::Array ignored_modules(const List<LayerPlan>& layers, const families::ModelFamily& family);

}  // namespace wasmquant
