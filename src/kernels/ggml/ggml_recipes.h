// From elements to the bytes of GGUF blocks: which stages each type runs and what it stores. Unless noted, x is finite.
#pragma once
#include "kernels/ggml_stages.h"
#include "numeric/ggml_type.h"

namespace wasmquant::kernels {

/// At most this many elements at a time: a block of error sums.
inline constexpr size_t kRecipeElements = kErrorBlock;

/// Blocks of 32 whose scale follows from their extent: q4_0, q4_1, q5_0, q5_1, q8_0. Returns the error of what is
/// stored if is_in_range(); otherwise some x may be non-finite (with meaningless bytes), or the error must be measured.
ErrorSums store_simple_blocks(const Stages& stages, GgmlType type, const float* x, size_t blocks,
                              uint8_t* out) noexcept;
/// Blocks of 32 in mxfp4.
void store_mxfp4(const Stages& stages, const float* x, size_t blocks, uint8_t* out) noexcept;

/// Blocks of 32 whose scale is searched for: iq4_nl, and with importance q4_0, q4_1, q5_0, q5_1.
/// energy: mean square of the row, for those with importance; iq4_nl has its own per block.
void store_searched_blocks(const Stages& stages, GgmlType type, const float* x, size_t blocks, const float* importance,
                           float energy, uint8_t* out) noexcept;

/// Whether the type is one of q1_0, q2_0 and nvfp4; one block of them.
bool is_direct(GgmlType type) noexcept;
void store_direct_block(GgmlType type, const float* x, uint8_t* out) noexcept;

/// One block of 256. importance: of its elements, or null.
void store_super_block(const Stages& stages, GgmlType type, const float* x, const float* importance,
                       uint8_t* out) noexcept;

/// One block of iq2 or iq3, and of iq1. importance: of its elements, or null.
void store_signed_block(GgmlType type, const float* x, const float* importance, uint8_t* out) noexcept;
void store_ternary_codebook_block(GgmlType type, const float* x, const float* importance, uint8_t* out) noexcept;

}  // namespace wasmquant::kernels
