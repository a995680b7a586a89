// Tiles whose source lies otherwise than the layout: numbers that are stored as varints, and matrices that lie
// transposed (weights of ONNX models).
#include <algorithm>
#include <cstring>

#include "formats/onnx.h"
#include "pipeline/session.h"

namespace wasmquant {
namespace {

// Rows that are written to side by side while a matrix is turned: their cache lines stay until each is full.
constexpr uint64_t kTurnedRows = 16;

}  // namespace

Status TensorSession::arrange(const TileRange& tile) {
  if (is_arranged_) return {};
  is_arranged_ = true;
  const WeightLayout& layout = task_.layout;
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
  for (uint64_t first = 0; first < width; first += kTurnedRows) {
    const uint64_t count = std::min(kTurnedRows, width - first);
    for (uint64_t column = 0; column < columns; ++column) {
      const std::span<const float> x = widened(column * width + first, count);
      for (uint64_t row = 0; row < count; ++row) turned_[(first + row) * columns + column] = x[row];
    }
  }
  is_turned_ = true;
  return {};
}

}  // namespace wasmquant
