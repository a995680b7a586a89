// Rows of float32 <-> the block types of GGUF files (numeric/ggml_type.h). The bytes equal those of ggml's quantizer
// (ggml-quants.c, compiled without fused multiply-add) on every instruction set.
//
// A block holds codes and scales; types of 256 elements ("K" types) scale sub-blocks of 16 or 32 elements by small
// integers times one float16. How scales are found: ggml_blocks.cpp (simple types), ggml_super_blocks.cpp.
//
// NaN and infinity count as 0 in weights and importance; scales beyond float16 become infinity.
#pragma once
#include <cstdint>

#include "kernels/kernels.h"
#include "numeric/ggml_type.h"

namespace wasmquant::kernels {

/// Whether the type searches for scales, always or with importance. Requires can_quantize(type).
bool uses_importance(GgmlType type) noexcept;

/// x: [rows, columns], columns a multiple of the type's block; out: info_of(type).bytes_of(rows * columns) bytes.
/// Requires can_quantize(type).
/// importance: [columns] or null. One weight >= 0 per column for the error that searches minimise, as in llama.cpp's
/// importance matrix; ignored by types without uses_importance().
/// error: null, or receives error_of_blocks of all x; usually measured during quantization, which is faster.
void quantize_blocks(GgmlType type, const float* x, uint64_t rows, uint64_t columns, const float* importance,
                     uint8_t* out, ErrorSums* error = nullptr) noexcept;

/// error_between x and the values of `blocks`; count is a multiple of the type's block.
ErrorSums error_of_blocks(GgmlType type, const float* x, uint64_t count, const uint8_t* blocks) noexcept;

/// y: `elements` floats, a multiple of the type's block. Requires can_dequantize(type). Any bytes are valid input.
void dequantize_blocks(GgmlType type, const uint8_t* blocks, uint64_t elements, float* y) noexcept;

namespace reference {
/// quantize_blocks by the scalar oracles of ggml_stages.h.
void quantize_blocks(GgmlType type, const float* x, uint64_t rows, uint64_t columns, const float* importance,
                     uint8_t* out, ErrorSums* error = nullptr) noexcept;
}  // namespace reference

}  // namespace wasmquant::kernels
