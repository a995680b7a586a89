// Order of codes inside bytes and words. Unpacked codes take one byte each (two's complement for signed dtypes). The
// caller owns both buffers and sizes the output with packed_bytes().
#pragma once
#include <cstdint>
#include <span>

#include "core/result.h"
#include "numeric/block_float.h"

namespace wasmquant::packing {

/// Nibbles inside one 32-bit word of eight codes: nibble k holds element order[k].
///   order   0 1 2 3 4 5 6 7
///   reorder 0 2 4 6 1 3 5 7 (AWQ GEMM; Quark's default)
enum class WordOrder : uint8_t { order, reorder };

// ---- int32_words.cpp: rows of `columns` codes to rows of ceil(columns * bits / 32) little-endian words.
// Element i sits in bits i*bits.. of its row, least significant first; codes of 2 to 8 bits. `offset` is added to
// each code before masking (compressed-tensors stores q + 2^(bits-1)); the last word is zero padded.

/// Codes after which a word ends with a code: 32 / bits, or 32 where codes straddle words.
constexpr uint64_t codes_of_whole_words(uint32_t bits) { return 32 % bits == 0 ? 32 / bits : 32; }
constexpr uint64_t words_per_row(uint64_t columns, uint32_t bits) { return (columns * bits + 31) / 32; }
/// Rows whose words hold 32 / bits codes each and begin with one (compressed-tensors before 0.18); codes of 1 to 8 bits.
constexpr uint64_t whole_words_per_row(uint64_t columns, uint32_t bits) {
  const uint64_t per_word = 32 / bits;
  return columns / per_word + (columns % per_word != 0);
}
/// Each code is its bits less `offset`.
void unpack_whole_words(const uint32_t* words, uint64_t rows, uint64_t columns, uint32_t bits, uint32_t offset,
                        uint8_t* codes) noexcept;
void pack_words(const uint8_t* codes, uint64_t rows, uint64_t columns, uint32_t bits, uint32_t offset,
                uint32_t* words) noexcept;
void unpack_words(const uint32_t* words, uint64_t rows, uint64_t columns, uint32_t bits, uint32_t offset,
                  bool is_signed, uint8_t* codes) noexcept;
/// Four-bit words in `order` or `reorder`.
void pack_nibble_words(const uint8_t* codes, uint64_t rows, uint64_t columns, WordOrder order,
                       uint32_t* words) noexcept;
void unpack_nibble_words(const uint32_t* words, uint64_t rows, uint64_t columns, WordOrder order, bool is_signed,
                         uint8_t* codes) noexcept;

// ---- nibbles.cpp: two codes per byte, the first in the low nibble; an odd last code gets a zero high nibble.
void pack_nibbles(std::span<const uint8_t> codes, uint8_t* bytes) noexcept;
void unpack_nibbles(std::span<const uint8_t> bytes, uint64_t count, bool is_signed, uint8_t* codes) noexcept;

// ---- bits.cpp: little-endian bit stream of 1..8-bit codes (Quark's int3: 8 codes in 3 bytes).
constexpr uint64_t bit_stream_bytes(uint64_t count, uint32_t bits) { return (count * bits + 7) / 8; }
void pack_bits(std::span<const uint8_t> codes, uint32_t bits, uint8_t* bytes) noexcept;
void unpack_bits(std::span<const uint8_t> bytes, uint64_t count, uint32_t bits, bool is_signed,
                 uint8_t* codes) noexcept;

// ---- block_float.cpp: rows of mx6, mx9 and bfp16. No other tool stores these, so the layout is specific to this
// library.
//   one block:  exponent byte | shift bits, one per pair of elements, first pair in bit 0 (mx6, mx9) | codes, two's
//               complement, a little-endian bit stream as in bits.cpp
// A short last block is padded with zero codes. Bytes per block of 16: mx6 1 + 1 + 10, mx9 1 + 1 + 16; of bfp16's 8: 1
// + 8.
constexpr uint64_t block_bytes(const BlockFloatFormat& format) {
  return 1 + (format.pair_shift ? (format.block / 2 + 7) / 8 : 0) + bit_stream_bytes(format.block, format.code_bits);
}
constexpr uint64_t block_row_bytes(uint64_t columns, const BlockFloatFormat& format) {
  return (columns + format.block - 1) / format.block * block_bytes(format);
}
/// One row: exponents one per block, shifts 0 or 1 per pair (null without pair_shift), codes one per element.
void pack_block_row(std::span<const int8_t> codes, const BlockFloatFormat& format, const uint8_t* exponents,
                    const uint8_t* shifts, uint8_t* bytes) noexcept;
void unpack_block_row(const uint8_t* bytes, uint64_t columns, const BlockFloatFormat& format, uint8_t* exponents,
                      uint8_t* shifts, int8_t* codes) noexcept;

// ---- transpose.cpp: [rows, columns] to [columns, rows], blocked for the cache.
void transpose_bytes(const uint8_t* in, uint64_t rows, uint64_t columns, uint8_t* out) noexcept;
void transpose_floats(const float* in, uint64_t rows, uint64_t columns, float* out) noexcept;

}  // namespace wasmquant::packing
