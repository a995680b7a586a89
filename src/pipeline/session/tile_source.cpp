// Reading and arranging; decoding is the decoder's.
#include "pipeline/session/tile_source.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "formats/onnx/onnx.h"
#include "pipeline/task/decoder.h"
#include "pipeline/task/to_float32.h"

namespace wasmquant {
namespace {

// Side of the squares for blocked transposition. A buffer avoids cache conflicts between rows a power of two apart.
constexpr uint64_t kSquare = 32;

// The bytes of a tile of plain values, without their place in memory.
TileRead plain_read(const TensorTask& task, const TileRange& range, const StorageDtypeInfo& dtype) {
  TileRead read;
  read.file = task.source.file;
  read.begin = task.source.offset;
  read.rows = 1;
  if (task.is_copy || task.is_varints) {
    if (task.is_copy) read.begin += range.begin;
    read.row_bytes = task.is_copy ? range.count() : task.source_bytes;
    return read;
  }
  const WeightLayout& layout = task.layout;
  const bool is_transposed = task.is_transposed();
  const uint64_t stored_rows = is_transposed ? layout.columns : layout.rows;
  const uint64_t stored_columns = is_transposed ? layout.rows : layout.columns;
  const uint64_t pitch = task.source_pitch != 0 ? task.source_pitch : stored_columns;
  read.stride = dtype.bytes_of(pitch);
  if (layout.column_tiles() != is_transposed) {  // the tile's lines are columns of the source
    read.begin += dtype.bytes_of(range.begin);
    read.row_bytes = dtype.bytes_of(range.count());
    read.rows = stored_rows;
    return read;
  }
  read.begin += dtype.bytes_of(range.begin * pitch);
  read.row_bytes = dtype.bytes_of(stored_columns);
  read.rows = range.count();
  if (pitch == stored_columns) {
    read.row_bytes *= read.rows;
    read.rows = 1;
  }
  return read;
}

}  // namespace

TileSource::TileSource(const TensorTask& task) : task_(task) {
  if (task.is_copy || !task.quantized || task.is_float32) return;
  const WeightLayout& layout = task.layout;
  TensorTask source = task.quantized->task;
  const bool is_across = source.layout->column_tiles() != layout.column_tiles();
  source.tile_lines = is_across ? source.layout->lines() : source_lines(layout, task.tile_lines, source.layout);
  decoder_ = std::make_unique<TensorDecoder>(std::move(source));
}

TileSource::~TileSource() = default;

List<TileRead> TileSource::reads(uint64_t tile) {
  is_arranged_ = false;
  if (decoder_) return decoder_->reads(tile);
  TileRead read = plain_read(task_, tile_range(task_, tile), info_of(dtype()));
  bytes_.resize(read.row_bytes * read.rows);
  read.pointer = bytes_.data();
  return {read};
}

std::span<const float> TileSource::values(uint64_t element, uint64_t count) {
  if (is_rearranged_) return std::span<const float>(rearranged_).subspan(element, count);
  if (dtype() == StorageDtype::F32) return std::span(reinterpret_cast<const float*>(bytes_.data()) + element, count);
  if (widened_.size() < count) widened_.resize(count);
  to_float32(dtype(), bytes_.data() + info_of(dtype()).bytes_of(element), count, widened_.data());
  return std::span<const float>(widened_.data(), count);
}

Status TileSource::arrange(const TileRange& tile) {
  if (is_arranged_) return {};
  is_arranged_ = true;
  const WeightLayout& layout = task_.layout;
  is_rearranged_ = false;
  if (decoder_) {
    take(decoder_->decode(tile.begin / std::max<uint64_t>(task_.tile_lines, 1)));
  } else {
    if (task_.is_varints) TRY_VOID(decode_varints());
    if (!task_.is_float32 && small_float_of(layout.source)) {  // runs of values need not begin at a byte
      const uint64_t count = bytes_.size() * 8 / info_of(layout.source).bits;
      rearranged_.resize(count);
      to_float32(layout.source, bytes_.data(), count, rearranged_.data());
      is_rearranged_ = true;
    } else if (task_.factors->any() && !layout.source_transposed) {
      take(values(0, tile.count() * layout.columns));
    }
  }
  if (layout.source_transposed) {  // the source's rows are the lines of column tiles
    const uint64_t columns = layout.column_tiles() ? tile.count() : layout.columns;
    transpose(columns, layout.column_tiles() ? layout.rows : tile.count());
  }
  if (task_.factors->any()) multiply(tile);
  return {};
}

void TileSource::take(std::span<const float> tile) {
  rearranged_.assign(tile.begin(), tile.end());
  is_rearranged_ = true;
}

Status TileSource::decode_varints() {
  std::vector<uint16_t> bits(task_.layout->rows * task_.layout->columns);
  TRY_VOID(onnx::decode_varints({bytes_.data(), bytes_.size()}, bits, task_.name));
  bytes_.resize(2 * bits.size());
  std::memcpy(bytes_.data(), bits.data(), bytes_.size());
  return {};
}

void TileSource::transpose(uint64_t columns, uint64_t width) {
  const std::vector<float> stored = is_rearranged_ ? std::exchange(rearranged_, {}) : std::vector<float>();
  is_rearranged_ = false;
  rearranged_.resize(width * columns);
  float square[kSquare * kSquare];
  for (uint64_t first = 0; first < width; first += kSquare) {
    const uint64_t rows = std::min(kSquare, width - first);
    for (uint64_t left = 0; left < columns; left += kSquare) {
      const uint64_t count = std::min(kSquare, columns - left);
      for (uint64_t c = 0; c < count; ++c) {
        const uint64_t at = (left + c) * width + first;
        const float* x = stored.empty() ? values(at, rows).data() : stored.data() + at;
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

void TileSource::multiply(const TileRange& tile) {
  const WeightLayout& layout = task_.layout;
  float* x = rearranged_.data();
  for (uint64_t row = tile.begin; row < tile.end; ++row)
    for (uint64_t column = 0; column < layout.columns; ++column)
      *x++ *= task_.factors->of(layout.source_transposed ? column * layout.rows + row : row * layout.columns + column);
}

}  // namespace wasmquant
