// GGUF's 1- to 3-bit types: blocks of 256 elements, of which eight, or twice four, are an entry of a codebook times a
// scale, with signs of their own (iq2, iq3) or with an offset (iq1). u is a 32-bit word, h a 16-bit one.
//   iq2_xxs d, 8 x (4 bytes of indices, u: 4 x 7 signs, scale << 28)                 x ~ d * (scale + 1/2) / 4 * entry
//   iq2_xs  d, 32 h: index | signs << 9, 8 bytes scales                              likewise
//   iq2_s   d, 32 bytes of indices, 32 bytes signs, 8 bytes upper bits, 8 scales     likewise
//   iq3_xxs d, 64 bytes of indices, 8 u: 4 x 7 signs, scale << 28                    x ~ d * (scale + 1/2) / 2 * entry
//   iq3_s   d, 64 bytes of indices, 8 bytes upper bits, 32 bytes signs, 4 scales     x ~ d * (2 * scale + 1) * entry
//   iq1_s   d, 32 bytes of indices, 8 h: 4 x 3 upper bits, scale << 12, minus << 15  x ~ d * (2 * scale + 1) * (entry ± 1/8)
//   iq1_m   32 bytes of indices, 16 bytes: 2 x (3 upper bits, minus << 3), 4 h: 4 x 3 scale, 4 bits of d << 12
// Seven signs are followed by one that makes their number even. Scales of 16 elements are nibbles, the lower one first.
#pragma once
#include <cstddef>
#include <cstdint>

#include "numeric/ggml_type.h"

namespace wasmquant::kernels {

/// The entries of a type's codebook.
struct Codebook {
  uint32_t count, length, base;
  const uint8_t* digits;  // [count, length], each below base
};
/// Unpacked at first use. Requires has_codebook.
Codebook codebook_of(GgmlType type) noexcept;
constexpr bool has_codebook(GgmlType type) noexcept {
  return type == GgmlType::iq2_xxs || type == GgmlType::iq2_xs || type == GgmlType::iq2_s ||
         type == GgmlType::iq3_xxs || type == GgmlType::iq3_s || type == GgmlType::iq1_s || type == GgmlType::iq1_m;
}

/// iq1: values of codes are eighths, to which an offset of one is added.
constexpr bool has_offsets(GgmlType type) noexcept { return type == GgmlType::iq1_s || type == GgmlType::iq1_m; }
/// Whether the signs of eight elements are an even number of negative ones.
constexpr bool has_even_signs(GgmlType type) noexcept {
  return type == GgmlType::iq2_xxs || type == GgmlType::iq2_xs || type == GgmlType::iq3_xxs;
}
/// Values of the digits of an entry, ascending.
const int8_t* codebook_values(GgmlType type) noexcept;

/// codes: 256 signed bytes; run i has scale[i]: x = scale * code, one float32 operation. Returns the elements of a run.
size_t unpack_codebook(GgmlType type, const uint8_t* in, uint8_t* codes, float* scale) noexcept;

}  // namespace wasmquant::kernels
