// Decodes one stored weight to float32, tile by tile, for any layout.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/bytes.h"
#include "core/list.h"
#include "core/result.h"
#include "pipeline/task/task.h"
#include "pipeline/task/tiles.h"
#include "quantize/stages.h"

namespace wasmquant {

class TensorDecoder {
 public:
  /// `task.components` locate the stored components; task.source_pitch applies only if task.by_columns.
  explicit TensorDecoder(TensorTask task);

  const TensorTask& task() const noexcept { return task_; }
  /// The reads of a tile; their memory belongs to the decoder and is valid until the next call.
  List<TileRead> reads(uint64_t tile);
  /// Values of the tile read last: [lines, columns]; [rows, width] for column tiles; [columns, lines] for layouts with
  /// source_transposed. With task().change, changed values as [lines, columns]; tiles are whole heads or columns.
  std::span<const float> decode(uint64_t tile);

 private:
  TileRange range_of(uint64_t tile) const noexcept;
  // Of a weight made of others: rounds of a tile, the values of its parts, and how a round joins them.
  TileRange rounds_of(uint64_t tile) const noexcept;
  std::span<const float> assembled_values(uint64_t tile);
  void add_round(List<std::span<const float>> shares);
  // decoder_values.cpp
  std::span<const float> stored_values(const TileRange& range);
  std::span<const float> block_float_values(const TileRange& range);
  /// For layouts with reads_group_index. Columns of missing groups become NaN.
  std::span<const float> indexed_values(const TileRange& range);
  /// values_ from codes_ and qparams_ with biases as zero points: code * scale + bias.
  /// Multiplies values_ by the layout's factors, per column and overall.
  void multiply();
  /// [rows, columns] to [columns, rows].
  std::span<const float> transposed(std::span<const float> values, uint64_t rows, uint64_t columns);

  TensorTask task_;
  // A byte range of each component, without varints.
  List<const uint8_t*> slice_pointers(const TileRange& range);

  List<Bytes> slices_;
  Bytes codes_, scratch_;
  std::vector<QParams> qparams_;
  std::vector<float> values_, rearranged_;
  std::optional<TwoStages> stages_;  // if progressive
  List<std::unique_ptr<TensorDecoder>> parts_;
  std::vector<float> round_;  // a round of the parts
};

}  // namespace wasmquant
