#include "pipeline/decoder.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "core/list.h"
#include "pipeline/widen.h"
#include "quantize/quantize.h"

namespace wasmquant {

TensorDecoder::TensorDecoder(TensorTask task, bool by_columns)
    : task_(std::move(task)), by_columns_(by_columns), slices_(task_.layout.components.size()) {
  stages_ = progressive_stages(task_.layout);
}

TileRange TensorDecoder::range_of(uint64_t tile) const noexcept {
  const uint64_t lines = by_columns_ ? task_.layout.columns : task_.layout.lines();
  const uint64_t begin = std::min(tile * task_.tile_lines, lines);
  return {begin, std::min(begin + task_.tile_lines, lines)};
}

List<TileRead> TensorDecoder::reads(uint64_t tile) {
  const WeightLayout& layout = task_.layout;
  const TileRange range = range_of(tile);
  List<TileRead> reads;
  for (size_t c = 0; c < slices_.size(); ++c) {
    const Component& component = layout.components[c];
    TileRead read{static_cast<uint32_t>(c), task_.components[c].file, 0, 0, 0, 1, nullptr};
    if (by_columns_) {
      const uint64_t element = info_of(component.dtype).bits / 8;
      read.begin = task_.components[c].offset + range.begin * element;
      read.row_bytes = range.count() * element;
      read.stride = layout.columns * element;
      read.rows = layout.rows;
    } else {
      const Slice slice = slice_to_read(layout, component, range);
      if (slice.bytes == 0) continue;
      read.begin = task_.components[c].offset + slice.offset;
      read.row_bytes = slice.bytes;
    }
    slices_[c].resize(read.row_bytes * read.rows);
    read.pointer = slices_[c].data();
    reads.push_back(read);
  }
  return reads;
}

std::span<const float> TensorDecoder::decode(uint64_t tile) {
  std::span<const float> values = stored_values(tile);
  const ValueChange& change = task_.change;
  if (change.is_transposed) values = turned(values, task_.layout.rows, range_of(tile).count());
  if (const uint64_t head = change.interleaved_rows; head != 0) {
    const uint64_t columns = task_.layout.columns;
    turned_.resize(values.size());
    for (uint64_t row = 0; row < values.size() / columns; ++row) {
      const uint64_t in_head = row % head, from = row - in_head + in_head / 2 + in_head % 2 * (head / 2);
      const uint64_t source = change.reverts ? row : from, target = change.reverts ? from : row;
      std::copy_n(values.data() + source * columns, columns, turned_.data() + target * columns);
    }
    values = turned_;
  }
  if (change.adds_one) {
    const float one = change.reverts ? -1.0f : 1.0f;
    turned_.assign(values.begin(), values.end());
    for (float& v : turned_) v += one;
    values = turned_;
  }
  return values;
}

std::span<const float> TensorDecoder::stored_values(uint64_t tile) {
  const WeightLayout& layout = task_.layout;
  const TileRange range = range_of(tile);
  const bool columns = by_columns_ || layout.column_tiles();
  const uint64_t count = range.count() * (columns ? layout.rows : layout.columns);
  values_.resize(count);
  if (layout.codes == CodeStorage::source_values || layout.codes == CodeStorage::cast_values) {
    widen(layout.components.front().dtype, slices_.front().data(), count, values_.data());
    return values_;
  }
  if (layout.codes == CodeStorage::rows_block_float) {
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
  codes_.resize(count);
  scratch_.resize(count);
  if (layout.reads_group_index) return indexed_values(range);
  qparams_.assign(tile_scale_count(layout, range), QParams{1.0f, 0.0f});
  List<const uint8_t*> slices;
  for (const Bytes& slice : slices_) slices.push_back(slice.data());
  unpack_tile(layout, range, slices, scratch_.data(), codes_.data(), qparams_);
  if (!layout.scales_in_tiles()) {
    dequantize(layout.granularity, layout.spec, qparams_, codes_.data(), count, range.begin * layout.columns,
               values_.data());
  } else {
    Granularity g;  // scales of consecutive elements, row after row
    g.axis = g.block = layout.granularity.contiguous_elements();
    g.outer = count / g.axis;
    g.split_outer = true;
    dequantize(g, layout.spec, qparams_, codes_.data(), count, 0, values_.data());
  }
  if (stages_) {
    QParams first{1.0f, 0.0f};
    for (size_t c = 0; c < slices_.size(); ++c)
      if (layout.components[c].role == Role::second_scale) std::memcpy(&first.scale, slices_[c].data(), 4);
    stages_->values_of(first, values_);
  }
  return layout.source_transposed ? turned(values_, range.count(), layout.columns) : values_;
}

std::span<const float> TensorDecoder::indexed_values(const TileRange& range) {
  const WeightLayout& layout = task_.layout;
  const uint64_t width = range.count(), groups = layout.columns / layout.granularity.block;
  const bool is_signed = info_of(layout.spec.dtype).is_signed;
  List<const uint8_t*> slices;
  const uint8_t* index = nullptr;
  for (size_t c = 0; c < slices_.size(); ++c) {
    slices.push_back(slices_[c].data());
    if (layout.components[c].role == Role::group_index) index = slices_[c].data();
  }
  qparams_.assign(layout.rows * groups, QParams{1.0f, 0.0f});
  unpack_indexed_tile(layout, range, slices, scratch_.data(), codes_.data(), qparams_);
  for (uint64_t k = 0; k < width; ++k) {
    uint32_t group;
    std::memcpy(&group, index + 4 * (range.begin + k), 4);
    for (uint64_t row = 0; row < layout.rows; ++row) {
      float& value = values_[row * width + k];
      const uint8_t code = codes_.data()[row * width + k];
      if (group >= groups) {
        value = std::numeric_limits<float>::quiet_NaN();
        continue;
      }
      const QParams& q = qparams_[row * groups + group];
      value = (static_cast<float>(is_signed ? static_cast<int8_t>(code) : code) - q.zero_point) * q.scale;
    }
  }
  return values_;
}

std::span<const float> TensorDecoder::turned(std::span<const float> values, uint64_t rows, uint64_t columns) {
  turned_.resize(values.size());
  for (uint64_t row = 0; row < rows; ++row)
    for (uint64_t column = 0; column < columns; ++column) turned_[column * rows + row] = values[row * columns + column];
  return turned_;
}

}  // namespace wasmquant
