// A weight that was changed in memory, quantized and stored as its task says, and what is read back from that.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "core/bytes.h"
#include "core/list.h"
#include "core/result.h"
#include "kernels/kernels.h"
#include "pipeline/task/task.h"
#include "quantize/qparams.h"

namespace wasmquant {

/// Scales in internal order (granularity.h).
struct WeightScales {
  std::vector<QParams> qparams;
  float second_scale = 1;  // that of scale_format e4m3
};

/// Scales of `weight` by the observer of the layout, as they will be read back. Not for copies, casts, block dtypes and
/// two stages. Errors: those of TensorScales.
Result<WeightScales> observed_scales(const TensorTask& task, std::span<const float> weight);

/// One piece of output, at its place in its file.
struct StoredPiece {
  Location at;
  Bytes bytes;
};

struct StoredChange {
  List<StoredPiece> pieces;
  std::vector<float> values;   // what the pieces mean, in C order
  kernels::ErrorSums error{};  // of the values against `original`; nothing is counted for copies
};

/// `weight` [elements of the task] in C order. `scales`: instead of those that would be observed. `original`: what the
/// error is measured against. Errors: value-not-finite, value-overflow, state-invalid, format-unsupported.
Result<StoredChange> store_changed(const TensorTask& task, std::span<const float> weight, const WeightScales* scales,
                                   std::span<const float> original);

/// The same for rows [first_row, first_row + values.size() / columns) of a matrix whose tiles are `tile_rows` rows
/// each; `first_row` begins one. Vectors are one row. Errors: format-unsupported where rows cannot be stored by
/// themselves (scales for the whole tensor, transposed codes); value-not-finite, value-overflow.
Result<StoredChange> store_changed_rows(const TensorTask& task, uint64_t tile_rows, uint64_t first_row,
                                        std::span<const float> values);

}  // namespace wasmquant
