// Raising the version of ONNX's own operators.
#pragma once
#include "core/result.h"
#include "formats/onnx.h"

namespace wasmquant::conversion {

/// Whether every node means the same in version `opset` as in the model's own. Errors: format-unsupported, naming the
/// node that does not.
Status check_raise(const onnx::Model& model, uint32_t opset);

/// The format version (ir_version) that came with these operators.
uint32_t ir_version_of(uint32_t opset) noexcept;

}  // namespace wasmquant::conversion
