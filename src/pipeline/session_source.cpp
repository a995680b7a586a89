// Tiles whose source lies otherwise than the layout: codes of quantized checkpoints, numbers that are stored as
// varints, and matrices that lie transposed (weights of ONNX models).
#include <algorithm>
#include <cstring>

#include "formats/onnx.h"
#include "pipeline/decoder.h"
#include "pipeline/session.h"

namespace wasmquant {
namespace {

// Side of the squares that a matrix is turned by. They go through a buffer: rows that lie a power of two apart share
// lines of the cache, so that each is touched once.
constexpr uint64_t kSquare = 32;

}  // namespace

Status TensorSession::arrange(const TileRange& tile) {
  if (is_arranged_) return {};
  is_arranged_ = true;
  const WeightLayout& layout = task_.layout;
  if (decoder_) {
    const std::span<const float> values = decoder_->decode(tile.begin / std::max<uint64_t>(task_.tile_lines, 1));
    turned_.assign(values.begin(), values.end());
    is_turned_ = true;
    return {};
  }
  if (task_.onnx && task_.onnx->is_varints) {
    std::vector<uint16_t> bits(layout.rows * layout.columns);
    TRY_VOID(onnx::decode_varints({input_.data(), input_.size()}, bits, task_.name));
    input_.resize(2 * bits.size());
    std::memcpy(input_.data(), bits.data(), input_.size());
  }
  if (!layout.source_transposed) return {};
  const uint64_t width = tile.count(), columns = layout.columns;
  turned_.resize(width * columns);
  is_turned_ = false;
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
        float* out = turned_.data() + (first + row) * columns + left;
        for (uint64_t c = 0; c < count; ++c) out[c] = square[c * kSquare + row];
      }
    }
  }
  is_turned_ = true;
  return {};
}

}  // namespace wasmquant
