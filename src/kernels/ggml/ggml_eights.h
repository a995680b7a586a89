// Eight elements of a type with a codebook: what a block stores of them, and the nearest that a scale allows.
#pragma once
#include <cstdint>

#include "numeric/ggml_type.h"

namespace wasmquant::kernels {

/// Eight elements as stored.
struct Eight {
  uint32_t first = 0, second = 0;  // entries; the second of two of four elements
  uint32_t signs = 0;              // bit i: element i is negative
  uint32_t scale = 0;              // the level of their run
  bool is_minus = false;           // the offset of iq1 is subtracted
};
inline constexpr uint32_t kEights = 32;  // of a block

/// Eight number i of a block. Requires has_codebook.
Eight load_eight(GgmlType type, const uint8_t* block, uint32_t i) noexcept;
/// Stores those of a whole block; its scales stay. Eights of one run have the same level and, in iq1_s, offset.
void put_eights(GgmlType type, const Eight* eights, uint8_t* block) noexcept;

/// iq2 and iq3: adds eight number i, and the level of a run, to a block that has zeros there.
void put_signed_eight(GgmlType type, uint32_t i, const Eight& eight, uint8_t* block) noexcept;
void put_level(GgmlType type, uint32_t run, uint32_t level, uint8_t* block) noexcept;

/// x [8] becomes near values that `scale` (of BlockGrid) allows, by the squares of the differences times `weight`, and `eight` what
/// stores them; its level stays, and in iq1_s its offset. As ggml looks: the nearest codes if they are an entry, else the best of
/// the entries around them. All are finite.
void nearest_eight(GgmlType type, float scale, const float* weight, float* x, Eight& eight) noexcept;

}  // namespace wasmquant::kernels
