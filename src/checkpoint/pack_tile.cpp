// Executes a WeightLayout on one tile: codes and scales to the bytes of its components, and back.
#include <algorithm>
#include <array>
#include <cstring>

#include "checkpoint/weight_layout.h"
#include "kernels/kernels.h"
#include "numeric/e8m0.h"

namespace wasmquant {
namespace {

using packing::WordOrder;

// A tile's codes as a matrix: row tiles [lines, columns], column tiles [rows, lines].
struct CodeMatrix {
  uint64_t rows, columns;
};
CodeMatrix code_matrix(const WeightLayout& layout, const TileRange& tile) noexcept {
  if (layout.column_tiles()) return {layout.rows, tile.count()};
  return {tile.count(), layout.columns};
}

// The scale matrix as it lies in the file: row tiles [lines, groups], column tiles transposed to [groups, rows].
struct ScaleMatrix {
  uint64_t rows, columns;
  bool transposed;
  uint64_t count() const noexcept { return rows * columns; }
  // Position in internal order of the element that stands at `stored`.
  uint64_t internal(uint64_t stored) const noexcept {
    return transposed ? (stored % columns) * rows + stored / columns : stored;
  }
};
ScaleMatrix scale_matrix(const WeightLayout& layout, const TileRange& tile) noexcept {
  const uint64_t count = tile_scale_count(layout, tile);
  if (!layout.scales_in_tiles()) return {1, count, false};
  if (layout.column_tiles()) return {count / layout.rows, layout.rows, true};
  return {tile.count(), count / std::max<uint64_t>(tile.count(), 1), false};
}

constexpr float kSmallestE5m3 = 0x1p-17f;  // a scale of zero could not be divided by
constexpr FloatFormat kE4m3 = float_format_of(Dtype::fp8_e4m3), kE5m3 = float_format_of(Dtype::fp8_e5m3);

// Scales in their component's dtype. Bytes: e4m3 under the second scale, else e8m0 or e5m3 as the spec says.
struct ScaleStorage {
  StorageDtype dtype;
  ScaleFormat format;
  float second;  // as the file has it; readers divide by a reciprocal one, so that is what a scale is
  bool is_reciprocal;

  void store(float value, uint8_t* out) const noexcept {
    uint16_t bits;
    switch (dtype) {
      case StorageDtype::F32:
        std::memcpy(out, &value, 4);
        return;
      case StorageDtype::F8_E4M3:
        *out = static_cast<uint8_t>(encode(kE4m3, is_reciprocal ? value * second : value / second, Overflow::saturate));
        return;
      case StorageDtype::U8:
        *out = format == ScaleFormat::e8m0 ? export_e8m0(value)
                                           : static_cast<uint8_t>(encode(kE5m3, value, Overflow::saturate));
        return;
      default:
        (dtype == StorageDtype::BF16 ? kernels::narrow_bf16 : kernels::narrow_f16)({&value, 1}, &bits);
        std::memcpy(out, &bits, 2);
    }
  }
  float load(const uint8_t* in) const noexcept {
    float value;
    uint16_t bits;
    switch (dtype) {
      case StorageDtype::F32:
        std::memcpy(&value, in, 4);
        return value;
      case StorageDtype::F8_E4M3:
        return is_reciprocal ? decode(kE4m3, *in) / second : decode(kE4m3, *in) * second;
      case StorageDtype::U8:
        return format == ScaleFormat::e8m0 ? decode_e8m0(*in) : decode(kE5m3, *in);
      default:
        std::memcpy(&bits, in, 2);
        (dtype == StorageDtype::BF16 ? kernels::widen_bf16 : kernels::widen_f16)({&bits, 1}, &value);
        return value;
    }
  }
};

void add_offset(uint8_t* codes, uint64_t count, int offset) noexcept {
  const auto delta = static_cast<uint8_t>(offset);
  for (uint64_t i = 0; i < count; ++i) codes[i] = static_cast<uint8_t>(codes[i] + delta);
}

// Four-bit words without padding between rows are one stream of nibbles, for which there is a kernel.
bool is_nibble_stream(const WeightLayout& layout, CodeMatrix m) noexcept {
  return layout.bits == 4 && m.columns % 8 == 0;
}

// columns_words: word (column * bits / 32, row) holds 32 / bits codes of a row.
void pack_columns(const WeightLayout& layout, const CodeMatrix& m, const uint8_t* codes, uint32_t* words) noexcept {
  const uint64_t per_word = 32 / layout.bits;
  const uint32_t mask = (1u << layout.bits) - 1;
  for (uint64_t row = 0; row < m.rows; ++row)
    for (uint64_t word = 0; word < m.columns / per_word; ++word) {
      uint32_t bits = 0;
      for (uint64_t k = 0; k < per_word; ++k) {
        const int32_t code = static_cast<int8_t>(codes[row * m.columns + word * per_word + k]) + layout.code_offset;
        bits |= (static_cast<uint32_t>(code) & mask) << (k * layout.bits);
      }
      words[word * m.rows + row] = bits;
    }
}
void unpack_columns(const WeightLayout& layout, const CodeMatrix& m, const uint32_t* words, uint8_t* codes) noexcept {
  const uint64_t per_word = 32 / layout.bits;
  const uint32_t mask = (1u << layout.bits) - 1;
  for (uint64_t row = 0; row < m.rows; ++row)
    for (uint64_t column = 0; column < m.columns; ++column) {
      const uint32_t word = words[column / per_word * m.rows + row];
      const auto code = static_cast<int32_t>(word >> (column % per_word * layout.bits) & mask);
      codes[row * m.columns + column] = static_cast<uint8_t>(code - layout.code_offset);
    }
}

void pack_codes(const WeightLayout& layout, CodeMatrix m, const uint8_t* codes, uint8_t* scratch,
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
      return;
  }
}

void unpack_codes(const WeightLayout& layout, CodeMatrix m, const uint8_t* in, uint8_t* scratch,
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
    case CodeStorage::rows_blocks:
    case CodeStorage::rows_block_float:
    case CodeStorage::ggml_rows:
    case CodeStorage::source_values:
    case CodeStorage::cast_values:
      return;
  }
}

// Codes of one row, their offset added, as a bit stream.
void pack_row(const WeightLayout& layout, const uint8_t* codes, uint8_t* scratch, uint8_t* out) noexcept {
  const auto columns = static_cast<size_t>(layout.columns);
  if (layout.bits == 4) return kernels::pack_nibbles({codes, columns}, static_cast<uint32_t>(layout.code_offset), out);
  const auto mask = static_cast<uint8_t>((1u << layout.bits) - 1);
  for (size_t i = 0; i < columns; ++i) scratch[i] = static_cast<uint8_t>(codes[i] + layout.code_offset) & mask;
  packing::pack_bits({scratch, columns}, layout.bits, out);
}

// What a row of rows_blocks is padded with: the zero point of its last group, as stored.
uint32_t padding_of(const WeightLayout& layout, const TileRange& tile, uint64_t row,
                    std::span<const QParams> q) noexcept {
  const uint64_t groups = layout.granularity.blocks();
  const uint64_t in_scales = layout.scales_in_tiles() ? row : tile.begin + row;
  return static_cast<uint32_t>(static_cast<int32_t>(q[in_scales * groups + groups - 1].zero_point) +
                               layout.code_offset);
}

uint64_t block_row_bytes(const WeightLayout& layout) noexcept {
  return layout.granularity.blocks() * layout.granularity.block * layout.bits / 8;
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

// Stored codes of a bit stream without their offset, as a signed dtype has them.
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

// The matrix of which each row is a bit stream of its own.
struct ZeroPointRows {
  uint64_t rows, columns, row_bytes;
};
ZeroPointRows zero_point_rows(const WeightLayout& layout, const ScaleMatrix& m) noexcept {
  const uint64_t columns =
      layout.zero_point == ZeroPointStorage::row_bits ? layout.granularity.blocks() : std::max<uint64_t>(m.count(), 1);
  return {m.count() / columns, columns, (columns * layout.bits + 7) / 8};
}

// Zero points packed along the rows of the scale matrix: word (row * bits / 32, group) holds row in bits row*bits..
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
      const uint64_t per_word = 32 / layout.bits;
      std::fill_n(words, (m.rows + per_word - 1) / per_word * m.columns, 0u);
      for (uint64_t row = 0; row < m.rows; ++row)
        for (uint64_t column = 0; column < m.columns; ++column)
          words[row / per_word * m.columns + column] |=
              (static_cast<uint32_t>(code_at(row * m.columns + column)) & mask) << (row % per_word * layout.bits);
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
        out[i / r.columns * r.row_bytes + bit / 8] |=
            static_cast<uint8_t>((static_cast<uint32_t>(code_at(i)) & mask) << (bit % 8));
      }
      return;
    }
    case ZeroPointStorage::none:
      return;
  }
}

void unpack_zero_points(const WeightLayout& layout, const ScaleMatrix& m, const uint8_t* in,
                        std::span<QParams> q) noexcept {
  const bool is_signed = info_of(layout.spec.dtype).is_signed;
  const auto store = [&](uint64_t stored, int32_t code) {
    q[m.internal(stored)].zero_point = static_cast<float>(code - layout.zero_offset - layout.code_offset);
  };
  const auto* words = reinterpret_cast<const uint32_t*>(in);
  const uint32_t mask = (1u << layout.bits) - 1;
  switch (layout.zero_point) {
    case ZeroPointStorage::bytes: {
      // A stored byte is signed when the codes beside it are: int8, or uint8 shifted into int8.
      const bool signed_bytes = is_signed || layout.code_offset < 0;
      for (uint64_t i = 0; i < m.count(); ++i) store(i, signed_bytes ? static_cast<int8_t>(in[i]) : in[i]);
      return;
    }
    case ZeroPointStorage::int32:
      for (uint64_t i = 0; i < m.count(); ++i) store(i, static_cast<int32_t>(words[i]));
      return;
    case ZeroPointStorage::row_words: {
      const uint64_t per_word = 32 / layout.bits;
      for (uint64_t row = 0; row < m.rows; ++row)
        for (uint64_t column = 0; column < m.columns; ++column)
          store(row * m.columns + column,
                static_cast<int32_t>(words[row / per_word * m.columns + column] >> (row % per_word * layout.bits) &
                                     mask));
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
      const bool is_negative = is_signed && layout.code_offset == 0;
      for (uint64_t i = 0; i < m.count(); ++i) {
        const uint64_t bit = i % r.columns * layout.bits;
        const uint32_t code = in[i / r.columns * r.row_bytes + bit / 8] >> (bit % 8) & mask;
        const uint32_t sign = is_negative ? 1u << (layout.bits - 1) : 0;
        store(i, static_cast<int32_t>(code ^ sign) - static_cast<int32_t>(sign));
      }
      return;
    }
    case ZeroPointStorage::none:
      return;
  }
}

float stored_second(const WeightLayout& layout, float second_scale) noexcept {
  return layout.reciprocal_second_scale ? 1.0f / second_scale : second_scale;
}

}  // namespace

float storable_scale(const WeightLayout& layout, float scale, float second_scale) noexcept {
  const ScaleFormat format = layout.spec.scale_format;
  for (const Component& component : layout.components) {
    if (component.role != Role::scale || component.dtype == StorageDtype::F32) continue;
    const ScaleStorage storage{component.dtype, format, stored_second(layout, second_scale),
                               layout.reciprocal_second_scale};
    uint8_t stored[sizeof(float)];
    storage.store(format == ScaleFormat::e5m3 ? std::max(scale, kSmallestE5m3) : scale, stored);
    const float loaded = storage.load(stored);
    return format == ScaleFormat::float32 && !(loaded > 0) ? kScaleEpsilon : loaded;
  }
  return scale;
}

void pack_tile(const WeightLayout& layout, const TileRange& tile, const uint8_t* codes,
               std::span<const QParams> qparams, float second_scale, uint8_t* scratch,
               std::span<uint8_t* const> slices) noexcept {
  const ScaleMatrix scales = scale_matrix(layout, tile);
  for (size_t c = 0; c < layout.components.size(); ++c) {
    const Component& component = layout.components[c];
    const Slice slice = slice_of(layout, component, tile);
    if (slice.bytes == 0) continue;
    switch (component.role) {
      case Role::codes:
        if (layout.codes == CodeStorage::rows_blocks)
          pack_blocks(layout, tile, codes, qparams, scratch, slices[c]);
        else
          pack_codes(layout, code_matrix(layout, tile), codes, scratch, slices[c]);
        break;
      case Role::scale: {
        const ScaleStorage storage{component.dtype, layout.spec.scale_format, stored_second(layout, second_scale),
                                   layout.reciprocal_second_scale};
        for (uint64_t i = 0; i < scales.count(); ++i)
          storage.store(qparams[scales.internal(i)].scale, slices[c] + i * info_of(component.dtype).bits / 8);
        break;
      }
      case Role::second_scale: {
        const float stored = stored_second(layout, second_scale);
        std::memcpy(slices[c], &stored, 4);
        break;
      }
      case Role::zero_point:
        pack_zero_points(layout, scales, qparams, slices[c]);
        break;
      case Role::shape:
      case Role::group_index:
        for (size_t d = 0; d < layout.shape.size(); ++d) std::memcpy(slices[c] + 8 * d, &layout.shape[d], 8);
        break;
    }
  }
}

void unpack_tile(const WeightLayout& layout, const TileRange& tile, std::span<const uint8_t* const> slices,
                 uint8_t* scratch, uint8_t* codes, std::span<QParams> qparams) noexcept {
  const ScaleMatrix scales = scale_matrix(layout, tile);
  float second = 1.0f;
  for (size_t c = 0; c < layout.components.size(); ++c) {
    if (layout.components[c].role != Role::second_scale) continue;
    std::memcpy(&second, slices[c], 4);
  }
  for (size_t c = 0; c < layout.components.size(); ++c) {
    const Component& component = layout.components[c];
    switch (component.role) {
      case Role::codes:
        if (layout.codes == CodeStorage::rows_blocks)
          unpack_blocks(layout, tile, slices[c], codes);
        else
          unpack_codes(layout, code_matrix(layout, tile), slices[c], scratch, codes);
        break;
      case Role::scale: {
        const ScaleStorage storage{component.dtype, layout.spec.scale_format, second, layout.reciprocal_second_scale};
        for (uint64_t i = 0; i < scales.count(); ++i)
          qparams[scales.internal(i)].scale = storage.load(slices[c] + i * info_of(component.dtype).bits / 8);
        break;
      }
      case Role::zero_point:
        unpack_zero_points(layout, scales, slices[c], qparams);
        break;
      case Role::second_scale:
      case Role::shape:
      case Role::group_index:
        break;
    }
  }
}

}  // namespace wasmquant
