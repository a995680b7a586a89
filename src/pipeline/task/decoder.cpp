#include "pipeline/task/decoder.h"

#include <algorithm>

#include "core/list.h"
#include "families/head_interleave.h"

namespace wasmquant {

TensorDecoder::TensorDecoder(TensorTask task) : task_(std::move(task)), slices_(task_.layout->components.size()) {
  task_.layout.edit([](WeightLayout& layout) { layout.is_stored = true; });
  stages_ = progressive_stages(task_.layout);
}

TileRange TensorDecoder::range_of(uint64_t tile) const noexcept {
  const uint64_t lines = task_.has_column_tiles() ? task_.layout->columns : task_.layout->rows;
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
    if (task_.by_columns) {
      const uint64_t element = info_of(component.dtype).bits / 8;
      read.begin = task_.components[c].offset + range.begin * element;
      read.row_bytes = range.count() * element;
      read.stride = (task_.source_pitch != 0 ? task_.source_pitch : layout.columns) * element;
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
  std::span<const float> values = stored_values(range_of(tile));
  const ValueTransform& change = task_.change;
  if (change.is_transposed) values = transposed(values, task_.layout->rows, range_of(tile).count());
  if (const uint64_t head = change.interleaved_rows; head != 0) {
    const families::HeadInterleave rows(head);
    rearranged_.resize(values.size());
    if (change.inverse)
      rows.to_halves(values, task_.layout->columns, rearranged_.data());
    else
      rows.to_pairs(values, task_.layout->columns, rearranged_.data());
    values = rearranged_;
  }
  if (change.adds_one) {
    const float one = change.inverse ? -1.0f : 1.0f;
    rearranged_.assign(values.begin(), values.end());
    for (float& v : rearranged_) v += one;
    values = rearranged_;
  }
  return values;
}

std::span<const float> TensorDecoder::transposed(std::span<const float> values, uint64_t rows, uint64_t columns) {
  rearranged_.resize(values.size());
  packing::transpose_floats(values.data(), rows, columns, rearranged_.data());
  return rearranged_;
}

}  // namespace wasmquant
