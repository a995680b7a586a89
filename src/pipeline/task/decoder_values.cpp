// Codes of a tile to values, as its layout says.
#include <cstring>
#include <limits>

#include "checkpoint/layout/biased_codes.h"
#include "checkpoint/layout/lookup_codes.h"
#include "pipeline/task/decoder.h"
#include "pipeline/task/to_float32.h"
#include "quantize/quantize.h"

namespace wasmquant {
// The first byte of a varint is its value if that is below 128, and has the low bits of others, with the highest one set:
// those of 128 to 255, and of negative numbers. Missing ones become 0.
List<const uint8_t*> TensorDecoder::slice_pointers(const TileRange& range) {
  List<const uint8_t*> pointers;
  for (size_t c = 0; c < slices_.size(); ++c) {
    Bytes& slice = slices_[c];
    const Component& component = task_.layout->components[c];
    if (component.varint_bytes == 0) {
      pointers.push_back(slice.data());
      continue;
    }
    if (slice.size() == component.varint_bytes && slice.size() != component.bytes) {
      uint64_t count = 0;
      bool is_first = true;
      for (uint64_t i = 0; i < component.varint_bytes; ++i) {
        const uint8_t byte = slice.data()[i];
        if (is_first && count < component.bytes) slice.data()[count++] = byte;
        is_first = byte < 0x80;
      }
      std::fill(slice.data() + count, slice.data() + component.bytes, uint8_t{0});
      slice.resize(component.bytes);
    }
    Component plain{component.role, {}, component.dtype, {}, component.bytes};
    pointers.push_back(slice.data() + slice_to_read(task_.layout, plain, range).offset);
  }
  return pointers;
}

std::span<const float> TensorDecoder::stored_values(const TileRange& range) {
  const WeightLayout& layout = task_.layout;
  const uint64_t count = range.count() * (task_.has_column_tiles() ? layout.rows : layout.columns);
  values_.resize(count);
  if (layout.codes == CodeStorage::source_values || layout.codes == CodeStorage::cast_values) {
    to_float32(layout.components.front().dtype, slices_.front().data(), count, values_.data());
    return values_;
  }
  if (layout.codes == CodeStorage::rows_block_float) return block_float_values(range);
  const List<const uint8_t*> slices = slice_pointers(range);
  if (layout.codes == CodeStorage::lookup_nibbles) {
    lookup_values(layout, range, slices, values_);
    return values_;
  }
  codes_.resize(count);
  scratch_.resize(count);
  if (layout.reads_group_index) return indexed_values(range);
  qparams_.assign(tile_scale_count(layout, range), QParams{1.0f, 0.0f});
  unpack_tile(layout, range, slices, scratch_.data(), codes_.data(), qparams_);
  if (has_biases(layout)) {
    values_of_biased(qparams_, codes_.data(), values_);
  } else if (const auto run = layout.run_in_tile(); !run) {
    dequantize(layout.granularity, layout.spec, qparams_, codes_.data(), count, range.begin * layout.columns,
               values_.data());
  } else {
    dequantize(one_scale_per_run(count / *run, *run), layout.spec, qparams_, codes_.data(), count, 0, values_.data());
  }
  if (stages_) {
    QParams first{1.0f, 0.0f};
    for (size_t c = 0; c < slices_.size(); ++c)
      if (layout.components[c].role == Role::second_scale) std::memcpy(&first.scale, slices_[c].data(), 4);
    stages_->values_of(first, values_);
  }
  multiply();
  if (layout.source_transposed) return transposed(values_, range.count(), layout.columns);
  if (const uint64_t rows = layout.matrix_rows; rows != 0) {
    rearranged_.resize(count);
    for (uint64_t at = 0; at < count; at += layout.columns)
      packing::transpose_floats(values_.data() + at, rows, layout.columns / rows, rearranged_.data() + at);
    return rearranged_;
  }
  return values_;
}

std::span<const float> TensorDecoder::block_float_values(const TileRange& range) {
  const WeightLayout& layout = task_.layout;
  const BlockFloatFormat format = block_float_of(layout.spec.dtype, static_cast<uint32_t>(layout.granularity.block));
  const size_t row_bytes = packing::block_row_bytes(layout.columns, format);
  std::vector<uint8_t> exponents(layout.granularity.blocks()), shifts((layout.columns + 1) / 2);
  std::vector<int8_t> codes(layout.columns);
  for (uint64_t line = 0; line < range.count(); ++line) {
    packing::unpack_block_row(slices_.front().data() + line * row_bytes, layout.columns, format, exponents.data(),
                              shifts.data(), codes.data());
    kernels::dequantize_block_float(codes, format, exponents.data(), shifts.data(),
                                    values_.data() + line * layout.columns);
  }
  return values_;
}

void TensorDecoder::multiply() {
  const WeightLayout& layout = task_.layout;
  for (size_t c = 0; c < slices_.size(); ++c) {
    const Component& component = layout.components[c];
    if (component.role != Role::column_factor) continue;
    std::vector<float> factors(layout.columns);
    to_float32(component.dtype, slices_[c].data(), layout.columns, factors.data());
    for (uint64_t at = 0; at < values_.size(); at += layout.columns)
      for (uint64_t column = 0; column < layout.columns; ++column) values_[at + column] *= factors[column];
  }
  if (layout.factor == 1.0f) return;
  for (float& value : values_) value *= layout.factor;
}

std::span<const float> TensorDecoder::indexed_values(const TileRange& range) {
  const WeightLayout& layout = task_.layout;
  const uint64_t groups = layout.granularity.blocks();
  const bool by_columns = layout.column_tiles(), is_signed = info_of(layout.spec.dtype).is_signed;
  const uint64_t rows = by_columns ? layout.rows : range.count(), width = by_columns ? range.count() : layout.columns;
  const uint64_t first_row = by_columns ? 0 : range.begin, first_column = by_columns ? range.begin : 0;
  const List<const uint8_t*> slices = slice_pointers(range);
  const uint8_t* index = nullptr;
  for (size_t c = 0; c < slices_.size(); ++c) {
    const Role role = layout.components[c].role;
    if (role == Role::group_index || role == Role::column_group) index = slices_[c].data();
  }
  qparams_.assign(layout.rows * groups, QParams{1.0f, 0.0f});
  unpack_indexed_tile(layout, range, slices, scratch_.data(), codes_.data(), qparams_);
  // -1 throughout: the order is not set, and groups are runs of columns (compressed-tensors 0.13).
  const bool is_unset = std::all_of(index, index + 4 * layout.columns, [](uint8_t byte) { return byte == 0xFF; });
  const uint64_t run = (layout.columns + groups - 1) / groups;
  for (uint64_t k = 0; k < width; ++k) {
    uint32_t group;
    std::memcpy(&group, index + 4 * (first_column + k), 4);
    if (is_unset) group = static_cast<uint32_t>((first_column + k) / run);
    for (uint64_t row = 0; row < rows; ++row) {
      float& value = values_[row * width + k];
      const uint8_t code = codes_.data()[row * width + k];
      if (group >= groups) {
        value = std::numeric_limits<float>::quiet_NaN();
        continue;
      }
      const QParams& q = qparams_[(first_row + row) * groups + group];
      value = (static_cast<float>(is_signed ? static_cast<int8_t>(code) : code) - q.zero_point) * q.scale;
    }
  }
  return values_;
}

}  // namespace wasmquant
