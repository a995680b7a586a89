// [rows, columns] bytes to [columns, rows]. Tiles of 8 x 8 bytes are transposed inside eight 64-bit words (three rounds
// of exchanging halves: 4 x 4, 2 x 2, single bytes); tiles go in blocks of 64 x 64, whose 64 + 64 cache lines stay
// resident. Floats go in blocks of 16 x 16, sixteen to a line.
#include <algorithm>
#include <utility>

#include "packing/octet.h"
#include "packing/packing.h"

namespace wasmquant::packing {
namespace {

constexpr uint64_t kTile = 8, kBlock = 64, kFloatBlock = 16;

// Exchanges, between words `a` (lower row) and `b`, the fields that `mask` selects in a (after the shift) and in b.
inline void exchange(uint64_t& a, uint64_t& b, uint32_t shift, uint64_t mask) noexcept {
  const uint64_t difference = (a >> shift ^ b) & mask;
  a ^= difference << shift;
  b ^= difference;
}

void transpose_tile(const uint8_t* in, uint64_t in_stride, uint8_t* out, uint64_t out_stride) noexcept {
  uint64_t r[kTile];
  for (uint64_t i = 0; i < kTile; ++i) r[i] = load_low(in + i * in_stride, kTile);
  for (uint32_t i = 0; i < 4; ++i) exchange(r[i], r[i + 4], 32, 0x00000000FFFFFFFFu);
  for (uint32_t i : {0u, 1u, 4u, 5u}) exchange(r[i], r[i + 2], 16, 0x0000FFFF0000FFFFu);
  for (uint32_t i : {0u, 2u, 4u, 6u}) exchange(r[i], r[i + 1], 8, 0x00FF00FF00FF00FFu);
  for (uint64_t i = 0; i < kTile; ++i) std::memcpy(out + i * out_stride, &r[i], kTile);
}

}  // namespace

void transpose_bytes(const uint8_t* in, uint64_t rows, uint64_t columns, uint8_t* out) noexcept {
  const uint64_t whole_rows = rows / kTile * kTile, whole_columns = columns / kTile * kTile;
  for (uint64_t r0 = 0; r0 < whole_rows; r0 += kBlock)
    for (uint64_t c0 = 0; c0 < whole_columns; c0 += kBlock)
      for (uint64_t c = c0; c < std::min(c0 + kBlock, whole_columns); c += kTile)
        for (uint64_t r = r0; r < std::min(r0 + kBlock, whole_rows); r += kTile)
          transpose_tile(in + r * columns + c, columns, out + c * rows + r, rows);
  for (uint64_t r = 0; r < rows; ++r)  // the edges: last columns of whole rows, all columns of the last rows
    for (uint64_t c = r < whole_rows ? whole_columns : 0; c < columns; ++c) out[c * rows + r] = in[r * columns + c];
}

void transpose_floats(const float* in, uint64_t rows, uint64_t columns, float* out) noexcept {
  for (uint64_t r0 = 0; r0 < rows; r0 += kFloatBlock)
    for (uint64_t c0 = 0; c0 < columns; c0 += kFloatBlock)
      for (uint64_t c = c0; c < std::min(c0 + kFloatBlock, columns); ++c)
        for (uint64_t r = r0; r < std::min(r0 + kFloatBlock, rows); ++r) out[c * rows + r] = in[r * columns + c];
}

}  // namespace wasmquant::packing
