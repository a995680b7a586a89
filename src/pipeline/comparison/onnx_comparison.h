// Weights of two ONNX models, one of which has some of them quantized. What a weight became is told from the names that
// are given to its parts (checkpoint/onnx_layout.h), by this library and by ONNX Runtime's own tools, and from their
// shapes.
#pragma once
#include "pipeline/comparison/comparison.h"

namespace wasmquant {

/// Both models are ONNX.
Comparison compare_onnx(const ModelIndex& reference, const ModelIndex& quantized, const TileBytes& tile_bytes);

}  // namespace wasmquant
