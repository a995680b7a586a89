// Packing and unpacking; the rows of the scale matrix are separate streams of words.
#include "checkpoint/layout/tile_zero_points.h"

#include <algorithm>
#include <array>

namespace wasmquant {
namespace {

// The matrix whose rows are separate bit streams.
struct ZeroPointRows {
  uint64_t rows, columns, row_bytes;
};
ZeroPointRows zero_point_rows(const WeightLayout& layout, const ScaleMatrix& m) noexcept {
  const uint64_t columns =
      layout.zero_point == ZeroPointStorage::row_bits ? layout.stored_blocks() : std::max<uint64_t>(m.count(), 1);
  return {m.count() / columns, columns, (columns * layout.bits + 7) / 8};
}

// The zero point of a stored one. GPTQ's version 1 stores it minus 1: 0 as the largest code, which comes back to 0. A
// symmetric one is 2^(bits - 1); where that itself is stored, by writers of version 2 that say version 1, it is meant.
int32_t zero_code(const WeightLayout& layout, int32_t stored) noexcept {
  if (layout.zero_offset == 0) return stored;
  if (layout.code_offset != 0) return stored == layout.code_offset ? stored : stored - layout.zero_offset;
  return (stored - layout.zero_offset) & ((1 << layout.bits) - 1);
}

}  // namespace

// Zero points packed along the rows of the scale matrix: the words of a column hold row in bits row*bits..
void pack_zero_points(const WeightLayout& layout, const ScaleMatrix& m, std::span<const QParams> q,
                      uint8_t* out) noexcept {
  const auto code_at = [&](uint64_t stored) {
    return static_cast<int32_t>(q[m.internal(stored)].zero_point) + layout.code_offset + layout.zero_offset;
  };
  auto* words = reinterpret_cast<uint32_t*>(out);
  const uint32_t mask = (1u << layout.bits) - 1;
  switch (layout.zero_point) {
    case ZeroPointStorage::bytes:
      for (uint64_t i = 0; i < m.count(); ++i) out[i] = static_cast<uint8_t>(code_at(i));
      return;
    case ZeroPointStorage::int32:
      for (uint64_t i = 0; i < m.count(); ++i) words[i] = static_cast<uint32_t>(code_at(i));
      return;
    case ZeroPointStorage::row_words: {
      std::fill_n(words, packing::words_per_row(m.rows, layout.bits) * m.columns, 0u);
      for (uint64_t row = 0; row < m.rows; ++row)
        for (uint64_t column = 0; column < m.columns; ++column) {
          const uint64_t bit = row * layout.bits;
          uint32_t* const word = words + bit / 32 * m.columns + column;
          const uint32_t code = static_cast<uint32_t>(code_at(row * m.columns + column)) & mask;
          *word |= code << bit % 32;
          if (bit % 32 + layout.bits > 32) word[m.columns] |= code >> (32 - bit % 32);
        }
      return;
    }
    case ZeroPointStorage::nibble_words: {
      // Column tiles pack along the last axis of [groups, rows]; row tiles along their only axis.
      const uint64_t rows = m.transposed ? m.rows : 1, columns = m.transposed ? m.columns : m.count();
      std::array<uint8_t, 8> codes{};
      uint32_t* word = words;
      for (uint64_t row = 0; row < rows; ++row)
        for (uint64_t column = 0; column < columns; column += 8, ++word) {
          for (uint64_t k = 0; k < 8; ++k)
            codes[k] = column + k < columns ? static_cast<uint8_t>(code_at(row * columns + column + k)) : uint8_t{0};
          packing::pack_nibble_words(codes.data(), 1, 8, layout.order, word);
        }
      return;
    }
    case ZeroPointStorage::row_bits:
    case ZeroPointStorage::bit_stream: {
      const ZeroPointRows r = zero_point_rows(layout, m);
      std::fill_n(out, r.rows * r.row_bytes, uint8_t{0});
      for (uint64_t i = 0; i < m.count(); ++i) {
        const uint64_t bit = i % r.columns * layout.bits;
        uint8_t* const byte = out + i / r.columns * r.row_bytes + bit / 8;
        const uint32_t code = (static_cast<uint32_t>(code_at(i)) & mask) << (bit % 8);
        byte[0] |= static_cast<uint8_t>(code);
        if (code > 0xFF) byte[1] |= static_cast<uint8_t>(code >> 8);
      }
      return;
    }
    case ZeroPointStorage::none:
      return;
  }
}

void unpack_zero_points(const WeightLayout& layout, const ScaleMatrix& m, const uint8_t* in,
                        std::span<QParams> q) noexcept {
  // With an offset, what is stored is not negative.
  const bool is_signed = info_of(layout.spec.dtype).is_signed && layout.code_offset <= 0;
  const auto store = [&](uint64_t stored, int32_t code) {
    q[m.internal(stored)].zero_point = static_cast<float>(zero_code(layout, code) - layout.code_offset);
  };
  const auto* words = reinterpret_cast<const uint32_t*>(in);
  const uint32_t mask = (1u << layout.bits) - 1;
  switch (layout.zero_point) {
    case ZeroPointStorage::bytes: {
      // Stored bytes are signed if the codes are: int8, or uint8 shifted into int8.
      const bool signed_bytes = is_signed || layout.code_offset < 0;
      for (uint64_t i = 0; i < m.count(); ++i) store(i, signed_bytes ? static_cast<int8_t>(in[i]) : in[i]);
      return;
    }
    case ZeroPointStorage::int32:
      for (uint64_t i = 0; i < m.count(); ++i) store(i, static_cast<int32_t>(words[i]));
      return;
    case ZeroPointStorage::row_words: {
      for (uint64_t row = 0; row < m.rows; ++row)
        for (uint64_t column = 0; column < m.columns; ++column) {
          const uint64_t bit = row * layout.bits;
          const uint32_t* const word = words + bit / 32 * m.columns + column;
          uint64_t bits = *word >> bit % 32;
          if (bit % 32 + layout.bits > 32) bits |= uint64_t{word[m.columns]} << (32 - bit % 32);
          store(row * m.columns + column, static_cast<int32_t>(bits & mask));
        }
      return;
    }
    case ZeroPointStorage::nibble_words: {
      const uint64_t rows = m.transposed ? m.rows : 1, columns = m.transposed ? m.columns : m.count();
      std::array<uint8_t, 8> codes{};
      const uint32_t* word = words;
      for (uint64_t row = 0; row < rows; ++row)
        for (uint64_t column = 0; column < columns; column += 8, ++word) {
          packing::unpack_nibble_words(word, 1, 8, layout.order, is_signed, codes.data());
          for (uint64_t k = 0; k < 8 && column + k < columns; ++k)
            store(row * columns + column + k, is_signed ? static_cast<int8_t>(codes[k]) : codes[k]);
        }
      return;
    }
    case ZeroPointStorage::row_bits:
    case ZeroPointStorage::bit_stream: {
      const ZeroPointRows r = zero_point_rows(layout, m);
      for (uint64_t i = 0; i < m.count(); ++i) {
        const uint64_t bit = i % r.columns * layout.bits;
        const uint8_t* const byte = in + i / r.columns * r.row_bytes + bit / 8;
        const uint32_t next = bit % 8 + layout.bits > 8 ? byte[1] : 0;
        const uint32_t code = (byte[0] | next << 8) >> (bit % 8) & mask;
        const uint32_t sign = is_signed ? 1u << (layout.bits - 1) : 0;
        store(i, static_cast<int32_t>(code ^ sign) - static_cast<int32_t>(sign));
      }
      return;
    }
    case ZeroPointStorage::none:
      return;
  }
}

}  // namespace wasmquant
