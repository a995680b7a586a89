// Reads one stored weight back to float32, tile by tile, whatever its layout: the components' bytes in, values out.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/bytes.h"
#include "core/list.h"
#include "core/result.h"
#include "pipeline/task/session.h"
#include "pipeline/task/task.h"
#include "quantize/stages.h"

namespace wasmquant {

class TensorDecoder {
 public:
  /// `task.components` say where the stored components lie; task.source_pitch is kept to where task.by_columns.
  explicit TensorDecoder(TensorTask task);

  const TensorTask& task() const noexcept { return task_; }
  /// What the tile needs; the memory is the decoder's and good until the next call.
  List<TileRead> reads(uint64_t tile);
  /// Values of the tile whose bytes were read last: [lines, columns]; [rows, width] for column tiles; [columns, lines],
  /// as the source has them, for layouts with source_transposed. With task().change what it makes of them, always
  /// [lines, columns]: tiles are whole heads, and columns of a weight that it transposes.
  std::span<const float> decode(uint64_t tile);

 private:
  TileRange range_of(uint64_t tile) const noexcept;
  // decoder_values.cpp
  std::span<const float> stored_values(const TileRange& range);
  std::span<const float> block_float_values(const TileRange& range);
  /// Of a layout with reads_group_index. Columns of groups that are not there become NaN.
  std::span<const float> indexed_values(const TileRange& range);
  /// values_ of codes_ and qparams_, whose zero points are biases: code * scale + bias.
  void add_biases();
  /// values_ times the layout's factors, of columns and of all.
  void multiply();
  /// [rows, columns] to [columns, rows].
  std::span<const float> transposed(std::span<const float> values, uint64_t rows, uint64_t columns);

  TensorTask task_;
  List<const uint8_t*> slice_pointers() const;

  List<Bytes> slices_;
  Bytes codes_, scratch_;
  std::vector<QParams> qparams_;
  std::vector<float> values_, rearranged_;
  std::optional<TwoStages> stages_;  // progressive ones
};

}  // namespace wasmquant
