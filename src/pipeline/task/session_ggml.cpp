// Tiles of GGUF types: rows of blocks with their own scales, so one pass suffices; ValueTransform may rearrange values.
#include <algorithm>
#include <cstring>

#include "families/head_interleave.h"
#include "kernels/ggml/ggml_blocks.h"
#include "pipeline/task/session.h"

namespace wasmquant {

std::span<const float> TensorSession::changed_rows(const TileRange& tile, uint64_t first, uint64_t count) {
  const uint64_t columns = task_.layout->columns, head = task_.change.interleaved_rows;
  if (!task_.change.any()) return widened((first - tile.begin) * columns, count * columns);
  scratch_values_.resize(count * columns);
  if (task_.change.is_transposed) {
    const uint64_t width = tile.count();  // of an input row, [columns, width]
    for (uint64_t column = 0; column < columns; ++column) {
      const std::span<const float> x = widened(column * width + (first - tile.begin), count);
      for (uint64_t row = 0; row < count; ++row) scratch_values_[row * columns + column] = x[row];
    }
  } else {
    const std::span<const float> x = widened((first - tile.begin) * columns, count * columns);
    // A bias element corresponds to a weight row.
    if (head != 0)
      families::HeadInterleave(head).to_pairs(x, task_.layout->rows == 1 ? 1 : columns, scratch_values_.data());
    else
      std::copy(x.begin(), x.end(), scratch_values_.begin());
  }
  if (task_.change.adds_one)
    for (float& v : scratch_values_) v += 1.0f;
  return scratch_values_;
}

void TensorSession::quantize_rows(GgmlType type, const float* x, uint64_t first, uint64_t count, uint8_t* out,
                                  kernels::ErrorSums& error) const {
  const uint64_t columns = task_.layout->columns;
  const std::vector<float>& importance = task_.importance;
  if (importance.empty()) return kernels::quantize_blocks(type, x, count, columns, nullptr, out, &error);
  const uint64_t expert_rows = task_.layout->rows / (importance.size() / columns), end = first + count;
  const float* row = x;
  uint8_t* to = out;
  while (first < end) {
    const uint64_t expert = first / expert_rows, rows = std::min(end, (expert + 1) * expert_rows) - first;
    kernels::quantize_blocks(type, row, rows, columns, importance.data() + expert * columns, to);
    first += rows;
    row += rows * columns;
    to += info_of(type).bytes_of(rows * columns);
  }
  error.append(kernels::error_of_blocks(type, x, count * columns, out));
}

Status TensorSession::run_ggml(const TileRange& tile) {
  const WeightLayout& layout = task_.layout;
  const StorageDtypeInfo& stored = info_of(layout.components.front().dtype);
  const GgmlType type = *ggml_type_of(stored.dtype);
  const uint64_t step = unit_lines();
  for (uint64_t begin = tile.begin; begin < tile.end; begin += step) {
    const uint64_t lines = std::min(step, tile.end - begin);
    // Blocks treat infinities as 0, like NaN; plain types use the largest value.
    const std::span<const float> x = clamped(changed_rows(tile, begin, lines), info_of(type).block == 1);
    uint8_t* out = slices_.front().data() + stored.bytes_of((begin - tile.begin) * layout.columns);
    kernels::ErrorSums error;
    quantize_rows(type, x.data(), begin, lines, out, error);
    TRY_VOID(check_blocks(error, type, x, out, begin * layout.columns));
    sums_.push_back(error);
  }
  return {};
}

}  // namespace wasmquant
