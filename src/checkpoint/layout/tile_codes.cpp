// Packing and unpacking by the storage of codes: words along rows or columns, bit streams, pairs of rows, bytes.
#include "checkpoint/layout/tile_codes.h"

#include <cstring>

#include "checkpoint/layout/tile_scales.h"
#include "kernels/kernels.h"

namespace wasmquant {
namespace {

// A tile's codes as a matrix: row tiles [lines, columns], column tiles [rows, lines].
struct CodeMatrix {
  uint64_t rows, columns;
};
CodeMatrix code_matrix(const WeightLayout& layout, const TileRange& tile) noexcept {
  if (layout.column_tiles()) return {layout.rows, tile.count()};
  return {tile.count(), layout.columns};
}

void add_offset(uint8_t* codes, uint64_t count, int offset) noexcept {
  const auto delta = static_cast<uint8_t>(offset);
  for (uint64_t i = 0; i < count; ++i) codes[i] = static_cast<uint8_t>(codes[i] + delta);
}

// Four-bit words without padding between rows are one nibble stream, which has a fast kernel.
bool is_nibble_stream(const WeightLayout& layout, CodeMatrix m) noexcept {
  return layout.bits == 4 && m.columns % 8 == 0;
}

// columns_words: word (column * bits / 32, row) contains codes of a row, which is a bit stream down the words.
void pack_columns(const WeightLayout& layout, const CodeMatrix& m, const uint8_t* codes, uint32_t* words) noexcept {
  const uint32_t mask = (1u << layout.bits) - 1;
  for (uint64_t row = 0; row < m.rows; ++row) {
    uint32_t* word = words + row;
    uint64_t held = 0;
    uint32_t filled = 0;
    for (uint64_t column = 0; column < m.columns; ++column) {
      const int32_t code = static_cast<int8_t>(codes[row * m.columns + column]) + layout.code_offset;
      held |= uint64_t{static_cast<uint32_t>(code) & mask} << filled;
      filled += layout.bits;
      if (filled < 32) continue;
      *word = static_cast<uint32_t>(held);
      word += m.rows;
      held >>= 32;
      filled -= 32;
    }
  }
}
void unpack_columns(const WeightLayout& layout, const CodeMatrix& m, const uint32_t* words, uint8_t* codes) noexcept {
  const uint32_t mask = (1u << layout.bits) - 1;
  for (uint64_t row = 0; row < m.rows; ++row) {
    const uint32_t* word = words + row;
    uint64_t held = 0;
    uint32_t filled = 0;
    for (uint64_t column = 0; column < m.columns; ++column) {
      if (filled < layout.bits) {
        held |= uint64_t{*word} << filled;
        word += m.rows;
        filled += 32;
      }
      const auto code = static_cast<int32_t>(static_cast<uint32_t>(held) & mask);
      codes[row * m.columns + column] = static_cast<uint8_t>(code - layout.code_offset);
      held >>= layout.bits;
      filled -= layout.bits;
    }
  }
}

void pack_matrix(const WeightLayout& layout, CodeMatrix m, const uint8_t* codes, uint8_t* scratch,
                 uint8_t* out) noexcept {
  const uint64_t count = m.rows * m.columns;
  switch (layout.codes) {
    case CodeStorage::rows_bytes:
      std::memcpy(out, codes, count);
      if (layout.code_offset != 0) add_offset(out, count, layout.code_offset);
      return;
    case CodeStorage::rows_words:
      if (is_nibble_stream(layout, m))
        return kernels::pack_nibbles({codes, static_cast<size_t>(count)}, static_cast<uint32_t>(layout.code_offset),
                                     out);
      packing::pack_words(codes, m.rows, m.columns, layout.bits, static_cast<uint32_t>(layout.code_offset),
                          reinterpret_cast<uint32_t*>(out));
      return;
    case CodeStorage::rows_nibble_words:
      packing::pack_nibble_words(codes, m.rows, m.columns, layout.order, reinterpret_cast<uint32_t*>(out));
      return;
    case CodeStorage::rows_bit_stream:
      if (layout.bits == 4) return kernels::pack_nibbles({codes, static_cast<size_t>(count)}, 0, out);
      packing::pack_bits({codes, count}, layout.bits, out);
      return;
    case CodeStorage::columns_bytes:
      packing::transpose_bytes(codes, m.rows, m.columns, out);
      return;
    case CodeStorage::columns_nibble_words:
      packing::transpose_bytes(codes, m.rows, m.columns, scratch);
      packing::pack_nibble_words(scratch, m.columns, m.rows, layout.order, reinterpret_cast<uint32_t*>(out));
      return;
    case CodeStorage::columns_words:
      pack_columns(layout, m, codes, reinterpret_cast<uint32_t*>(out));
      return;
    case CodeStorage::columns_int32: {
      packing::transpose_bytes(codes, m.rows, m.columns, scratch);
      const bool is_signed = info_of(layout.spec.dtype).is_signed;
      auto* words = reinterpret_cast<int32_t*>(out);
      for (uint64_t i = 0; i < count; ++i) words[i] = is_signed ? static_cast<int8_t>(scratch[i]) : scratch[i];
      return;
    }
    case CodeStorage::rows_blocks:
    case CodeStorage::rows_block_float:
    case CodeStorage::ggml_rows:
    case CodeStorage::source_values:
    case CodeStorage::cast_values:
    case CodeStorage::row_pair_nibbles:
    case CodeStorage::rows_whole_words:
    case CodeStorage::lookup_nibbles:
      return;
  }
}

// From [rows / 2, columns] bytes.
void unpack_row_pairs(CodeMatrix m, bool is_signed, const uint8_t* in, uint8_t* codes) noexcept {
  const auto code_of = [is_signed](uint32_t nibble) {
    return static_cast<uint8_t>(is_signed ? (nibble ^ 8) - 8 : nibble);
  };
  for (uint64_t row = 0; row < m.rows; ++row)
    for (uint64_t column = 0; column < m.columns; ++column)
      codes[row * m.columns + column] = code_of(in[row / 2 * m.columns + column] >> (row % 2 * 4) & 15u);
}

void unpack_matrix(const WeightLayout& layout, CodeMatrix m, const uint8_t* in, uint8_t* scratch,
                   uint8_t* codes) noexcept {
  const uint64_t count = m.rows * m.columns;
  const bool is_signed = info_of(layout.spec.dtype).is_signed;
  switch (layout.codes) {
    case CodeStorage::rows_bytes:
      std::memcpy(codes, in, count);
      if (layout.code_offset != 0) add_offset(codes, count, -layout.code_offset);
      return;
    case CodeStorage::rows_words:
      if (is_nibble_stream(layout, m))
        return kernels::unpack_nibbles({in, static_cast<size_t>(count / 2)}, static_cast<size_t>(count),
                                       static_cast<uint32_t>(layout.code_offset), is_signed, codes);
      packing::unpack_words(reinterpret_cast<const uint32_t*>(in), m.rows, m.columns, layout.bits,
                            static_cast<uint32_t>(layout.code_offset), is_signed, codes);
      return;
    case CodeStorage::rows_whole_words:
      packing::unpack_whole_words(reinterpret_cast<const uint32_t*>(in), m.rows, m.columns, layout.bits,
                                  static_cast<uint32_t>(layout.code_offset), codes);
      return;
    case CodeStorage::rows_nibble_words:
      packing::unpack_nibble_words(reinterpret_cast<const uint32_t*>(in), m.rows, m.columns, layout.order, is_signed,
                                   codes);
      return;
    case CodeStorage::rows_bit_stream:
      packing::unpack_bits({in, packing::bit_stream_bytes(count, layout.bits)}, count, layout.bits, is_signed, codes);
      return;
    case CodeStorage::columns_bytes:
      packing::transpose_bytes(in, m.columns, m.rows, codes);
      return;
    case CodeStorage::columns_nibble_words:
      packing::unpack_nibble_words(reinterpret_cast<const uint32_t*>(in), m.columns, m.rows, layout.order, is_signed,
                                   scratch);
      packing::transpose_bytes(scratch, m.columns, m.rows, codes);
      return;
    case CodeStorage::columns_words:
      unpack_columns(layout, m, reinterpret_cast<const uint32_t*>(in), codes);
      return;
    case CodeStorage::columns_int32: {
      const auto* words = reinterpret_cast<const int32_t*>(in);
      for (uint64_t i = 0; i < count; ++i) scratch[i] = static_cast<uint8_t>(words[i]);
      packing::transpose_bytes(scratch, m.columns, m.rows, codes);
      return;
    }
    case CodeStorage::row_pair_nibbles:
      unpack_row_pairs(m, is_signed, in, codes);
      return;
    case CodeStorage::rows_blocks:
    case CodeStorage::rows_block_float:
    case CodeStorage::ggml_rows:
    case CodeStorage::source_values:
    case CodeStorage::cast_values:
    case CodeStorage::lookup_nibbles:
      return;
  }
}

// Codes of one row plus offset, as a bit stream.
void pack_row(const WeightLayout& layout, const uint8_t* codes, uint8_t* scratch, uint8_t* out) noexcept {
  const auto columns = static_cast<size_t>(layout.columns);
  if (layout.bits == 4) return kernels::pack_nibbles({codes, columns}, static_cast<uint32_t>(layout.code_offset), out);
  const auto mask = static_cast<uint8_t>((1u << layout.bits) - 1);
  for (size_t i = 0; i < columns; ++i) scratch[i] = static_cast<uint8_t>(codes[i] + layout.code_offset) & mask;
  packing::pack_bits({scratch, columns}, layout.bits, out);
}

// The padding of a row of rows_blocks: the stored zero point of its last block.
uint32_t padding_of(const WeightLayout& layout, const TileRange& tile, uint64_t row,
                    std::span<const QParams> q) noexcept {
  const ScaleMatrix scales = scale_matrix(layout, tile);
  const uint64_t in_scales = layout.scales_in_tiles() ? row : tile.begin + row;
  const uint64_t last = scales.internal(in_scales * scales.columns + scales.columns - 1);
  return static_cast<uint32_t>(static_cast<int32_t>(q[last].zero_point) + layout.code_offset);
}

uint64_t block_row_bytes(const WeightLayout& layout) noexcept {
  return layout.stored_blocks() * layout.block * layout.bits / 8;
}

void pack_blocks(const WeightLayout& layout, const TileRange& tile, const uint8_t* codes, std::span<const QParams> q,
                 uint8_t* scratch, uint8_t* out) noexcept {
  const uint64_t row_bytes = block_row_bytes(layout), per_byte = 8 / layout.bits;
  const uint64_t stored = row_bytes * per_byte;
  for (uint64_t row = 0; row < tile.count(); ++row, out += row_bytes) {
    pack_row(layout, codes + row * layout.columns, scratch, out);
    if (stored == layout.columns) continue;
    const uint32_t padding = padding_of(layout, tile, row, q);
    for (uint64_t i = layout.columns; i < stored; ++i) {
      if (i % per_byte == 0) out[i / per_byte] = 0;
      out[i / per_byte] |= static_cast<uint8_t>(padding << (i % per_byte * layout.bits));
    }
  }
}

// Stored codes of a bit stream minus their offset, in the signed dtype.
void unpack_row(const WeightLayout& layout, const uint8_t* in, uint64_t count, uint8_t* codes) noexcept {
  const bool is_signed = info_of(layout.spec.dtype).is_signed;
  const bool keeps = layout.code_offset == 0;
  packing::unpack_bits({in, packing::bit_stream_bytes(count, layout.bits)}, count, layout.bits, is_signed && keeps,
                       codes);
  if (!keeps) add_offset(codes, count, -layout.code_offset);
}

void unpack_blocks(const WeightLayout& layout, const TileRange& tile, const uint8_t* in, uint8_t* codes) noexcept {
  const uint64_t row_bytes = block_row_bytes(layout);
  for (uint64_t row = 0; row < tile.count(); ++row)
    unpack_row(layout, in + row * row_bytes, layout.columns, codes + row * layout.columns);
}

}  // namespace

void pack_codes(const WeightLayout& layout, const TileRange& tile, const uint8_t* codes,
                std::span<const QParams> qparams, uint8_t* scratch, uint8_t* out) noexcept {
  if (layout.codes == CodeStorage::rows_blocks) return pack_blocks(layout, tile, codes, qparams, scratch, out);
  pack_matrix(layout, code_matrix(layout, tile), codes, scratch, out);
}

void unpack_codes(const WeightLayout& layout, const TileRange& tile, const uint8_t* in, uint8_t* scratch,
                  uint8_t* codes) noexcept {
  if (layout.codes == CodeStorage::rows_blocks) return unpack_blocks(layout, tile, in, codes);
  unpack_matrix(layout, code_matrix(layout, tile), in, scratch, codes);
}

}  // namespace wasmquant
