// Tiles of GGUF types: rows of blocks that hold their own scales, so that codes come in one pass. Values may be
// rearranged on the way (ValueChange).
#include <algorithm>
#include <cstring>

#include "kernels/ggml_blocks.h"
#include "pipeline/session.h"

namespace wasmquant {

std::span<const float> TensorSession::changed_rows(const TileRange& tile, uint64_t first, uint64_t count) {
  const uint64_t columns = task_.layout.columns, head = task_.change.interleaved_rows;
  if (!task_.change.any()) return widened((first - tile.begin) * columns, count * columns);
  numbers_.resize(count * columns);
  if (task_.change.is_transposed) {
    const uint64_t width = tile.count();  // of a row of the input, [columns, width]
    for (uint64_t column = 0; column < columns; ++column) {
      const std::span<const float> x = widened(column * width + (first - tile.begin), count);
      for (uint64_t row = 0; row < count; ++row) numbers_[row * columns + column] = x[row];
    }
  } else {
    const std::span<const float> x = widened((first - tile.begin) * columns, count * columns);
    for (uint64_t row = 0; row < count; ++row) {
      uint64_t from = row;  // whole heads: in_head counts from the first of these rows
      if (head != 0) {
        const uint64_t in_head = row % head;
        from = row - in_head + in_head / 2 + in_head % 2 * (head / 2);
      }
      std::copy_n(x.begin() + static_cast<ptrdiff_t>(from * columns), columns,
                  numbers_.begin() + static_cast<ptrdiff_t>(row * columns));
    }
  }
  if (task_.change.adds_one)
    for (float& v : numbers_) v += 1.0f;
  return numbers_;
}

void TensorSession::quantize_rows(GgmlType type, const float* x, uint64_t first, uint64_t count, uint8_t* out) const {
  const uint64_t columns = task_.layout.columns;
  const std::vector<float>& importance = task_.importance;
  if (importance.empty()) return kernels::quantize_blocks(type, x, count, columns, nullptr, out);
  const uint64_t expert_rows = task_.layout.rows / (importance.size() / columns), end = first + count;
  while (first < end) {
    const uint64_t expert = first / expert_rows, rows = std::min(end, (expert + 1) * expert_rows) - first;
    kernels::quantize_blocks(type, x, rows, columns, importance.data() + expert * columns, out);
    first += rows;
    x += rows * columns;
    out += info_of(type).bytes_of(rows * columns);
  }
}

Status TensorSession::run_ggml(const TileRange& tile) {
  const WeightLayout& layout = task_.layout;
  const StorageDtypeInfo& stored = info_of(layout.components.front().dtype);
  const GgmlType type = *ggml_type_of(stored.dtype);
  const uint64_t step = unit_lines();
  for (uint64_t begin = tile.begin; begin < tile.end; begin += step) {
    const uint64_t lines = std::min(step, tile.end - begin), count = lines * layout.columns;
    const std::span<const float> x = changed_rows(tile, begin, lines);
    if (task_.non_finite == NonFinite::error && !kernels::reduce_absmax(x).all_finite)
      return not_finite(x, begin * layout.columns);
    uint8_t* out = slices_.front().data() + stored.bytes_of((begin - tile.begin) * layout.columns);
    quantize_rows(type, x.data(), begin, lines, out);
    values_.resize(std::max<size_t>(values_.size(), count));
    kernels::dequantize_blocks(type, out, count, values_.data());
    sums_.push_back(kernels::error_between(x, values_.data()));
  }
  return {};
}

}  // namespace wasmquant
