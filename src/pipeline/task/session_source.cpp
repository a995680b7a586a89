// Tiles with another source layout: codes of quantized checkpoints, small floats, varints, transposed matrices (ONNX).
#include <algorithm>
#include <cmath>
#include <cstring>

#include "formats/onnx/onnx.h"
#include "pipeline/task/decoder.h"
#include "pipeline/task/session.h"
#include "pipeline/task/to_float32.h"

namespace wasmquant {
namespace {

// Side of the squares for blocked transposition. A buffer avoids cache conflicts between rows a power of two apart.
constexpr uint64_t kSquare = 32;

}  // namespace

TensorSession& TensorSession::joined(uint64_t& tile) {
  tile -= task_.tiles;
  size_t number = 0;
  for (; number + 1 < task_.joined.size() && tile >= task_.joined[number]->tiles; ++number)
    tile -= task_.joined[number]->tiles;
  const TensorTask& task = *task_.joined[number];
  if (!joined_ || joined_->task().name != task.name) joined_ = std::make_unique<TensorSession>(task);
  return *joined_;
}

Status TensorSession::arrange(const TileRange& tile) {
  if (is_arranged_) return {};
  is_arranged_ = true;
  const WeightLayout& layout = task_.layout;
  if (decoder_) {
    const std::span<const float> values = decoder_->decode(tile.begin / std::max<uint64_t>(task_.tile_lines, 1));
    rearranged_.assign(values.begin(), values.end());
    is_rearranged_ = true;
    if (layout.source_transposed) {  // the whole matrix, as [columns, rows]
      const std::vector<float> stored = std::move(rearranged_);
      rearranged_.resize(stored.size());
      for (uint64_t column = 0; column < layout.columns; ++column)
        for (uint64_t row = 0; row < layout.rows; ++row)
          rearranged_[row * layout.columns + column] = stored[column * layout.rows + row];
    }
    if (task_.factors->any()) apply_factors(tile);
    return {};
  }
  if (task_.is_varints) {
    std::vector<uint16_t> bits(layout.rows * layout.columns);
    TRY_VOID(onnx::decode_varints({source_bytes_.data(), source_bytes_.size()}, bits, task_.name));
    source_bytes_.resize(2 * bits.size());
    std::memcpy(source_bytes_.data(), bits.data(), source_bytes_.size());
  }
  if (!layout.source_transposed && task_.factors->any()) {
    multiply(tile);
    return {};
  }
  if (!task_.is_float32 && small_float_of(layout.source)) {  // runs need not begin at a byte
    rearranged_.resize(source_bytes_.size() * 8 / info_of(layout.source).bits);
    to_float32(layout.source, source_bytes_.data(), rearranged_.size(), rearranged_.data());
    is_rearranged_ = true;
    return {};
  }
  if (!layout.source_transposed) return {};
  // The source's rows are the lines of column tiles.
  if (layout.column_tiles())
    transpose(tile.count(), layout.rows);
  else
    transpose(layout.columns, tile.count());
  if (task_.factors->any()) multiply(tile);
  return {};
}

void TensorSession::transpose(uint64_t columns, uint64_t width) {
  rearranged_.resize(width * columns);
  is_rearranged_ = false;
  float square[kSquare * kSquare];
  for (uint64_t first = 0; first < width; first += kSquare) {
    const uint64_t rows = std::min(kSquare, width - first);
    for (uint64_t left = 0; left < columns; left += kSquare) {
      const uint64_t count = std::min(kSquare, columns - left);
      for (uint64_t c = 0; c < count; ++c) {
        const std::span<const float> x = widened((left + c) * width + first, rows);
        for (uint64_t row = 0; row < rows; ++row) square[c * kSquare + row] = x[row];
      }
      for (uint64_t row = 0; row < rows; ++row) {
        float* out = rearranged_.data() + (first + row) * columns + left;
        for (uint64_t c = 0; c < count; ++c) out[c] = square[c * kSquare + row];
      }
    }
  }
  is_rearranged_ = true;
}

void TensorSession::multiply(const TileRange& tile) {
  const WeightLayout& layout = task_.layout;
  const bool is_transposed = layout.source_transposed;
  if (!is_transposed) {
    is_rearranged_ = false;
    const std::span<const float> values = widened(0, tile.count() * layout.columns);
    rearranged_.assign(values.begin(), values.end());
    is_rearranged_ = true;
  }
  apply_factors(tile);
}

void TensorSession::apply_factors(const TileRange& tile) {
  const WeightLayout& layout = task_.layout;
  const bool is_transposed = layout.source_transposed;
  float* x = rearranged_.data();
  for (uint64_t row = tile.begin; row < tile.end; ++row)
    for (uint64_t column = 0; column < layout.columns; ++column)
      *x++ *= task_.factors->of(is_transposed ? column * layout.rows + row : row * layout.columns + column);
}

Status TensorSession::multiply_copy(const TileRange& bytes) {
  const StorageDtype dtype = task_.layout->components.front().dtype;
  const uint64_t size = info_of(dtype).bits / 8, count = bytes.count() / size, first = bytes.begin / size;
  scratch_values_.resize(count);
  if (dtype == StorageDtype::F32) {
    std::memcpy(scratch_values_.data(), source_bytes_.data(), bytes.count());
  } else {
    const std::span<const uint16_t> bits(reinterpret_cast<const uint16_t*>(source_bytes_.data()), count);
    (dtype == StorageDtype::F16 ? kernels::widen_f16 : kernels::widen_bf16)(bits, scratch_values_.data());
  }
  values_.resize(count);
  for (uint64_t i = 0; i < count; ++i) values_[i] = scratch_values_[i] * task_.factors->of(first + i);
  store(dtype, count, source_bytes_.data());
  for (uint64_t i = 0; i < count && !saturates(); ++i)
    if (std::isfinite(scratch_values_[i]) && !std::isfinite(values_[i]))
      return error_at(ErrorCode::value_overflow, task_.name,
                      "{} {}, multiplied by the batch norm's factor {}, exceeds the range of {}", scratch_values_[i],
                      place_of(first + i), task_.factors->of(first + i), float_name_of(dtype));
  return {};
}

}  // namespace wasmquant
