// Quantizes and stores a weight that was changed in memory, and reads it back.
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

/// Observed scales of `weight`. `joined`: the range of the weights it shares one with. Not for copies, casts, block
/// dtypes and two stages. `squares`: mean squares of input channels, which weigh the errors of scale_refit where the task
/// has no importance; empty: ones. `weight` may be some rows of one whose rows have scales of their own. Errors: those of
/// TensorScales.
Result<WeightScales> observed_scales(const TensorTask& task, std::span<const float> weight,
                                     const ValueRange& joined = {}, std::span<const float> squares = {});

/// A piece of output and its place in its file.
struct StoredPiece {
  Location at;
  Bytes bytes;
};

struct StoredValues {
  List<StoredPiece> pieces;
  std::vector<float> values;   // the decoded pieces, in C order
  kernels::ErrorSums error{};  // of the values against `original`; zero for copies
};

/// `weight`: [elements of the task] in C order. `scales`: replace observed ones. `original`: reference of the error.
/// `joined`: as for observed_scales; the task's joined weights are not read. Errors: value-not-finite, value-overflow, state-invalid, format-unsupported.
Result<StoredValues> store_modified(const TensorTask& task, std::span<const float> weight, const WeightScales* scales,
                                    std::span<const float> original, const ValueRange& joined = {});

/// Stores codes [rows, columns] whose columns belong to the groups of `index` [columns], with the scales of all groups
/// [rows, groups], which must be storable as they are; `values`: what they stand for. Errors: format-unsupported, value-overflow.
Result<StoredValues> store_grouped(const TensorTask& task, std::span<const uint8_t> codes,
                                   std::span<const QParams> qparams, std::span<const uint32_t> index,
                                   std::span<const float> values, std::span<const float> original);

/// Stores blocks of a GGUF type, [rows] of them in the model's order; of a task with `file`, see FileTensors::store. Errors: value-overflow if their values are not finite, or
/// `original` has larger ones than the type.
Result<StoredValues> store_blocks(const TensorTask& task, std::span<const uint8_t> blocks,
                                  std::span<const float> original);

/// Whether store_modified_rows() can store the weight in tiles of as many rows.
bool can_store_rows(const TensorTask& task, uint64_t tile_rows);

/// The same as store_modified() without scales for rows [first_row, first_row + values.size() / columns) of a matrix in tiles of `tile_rows` rows;
/// `first_row` begins a tile. Vectors are one row. Errors: format-unsupported if rows cannot be stored separately
/// (scales for the whole tensor, transposed codes or values); value-not-finite, value-overflow.
Result<StoredValues> store_modified_rows(const TensorTask& task, uint64_t tile_rows, uint64_t first_row,
                                         std::span<const float> values);

}  // namespace wasmquant
