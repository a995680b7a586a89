// What makes a tile's output of its values: one class for each way to store them.
#pragma once
#include <cstdint>
#include <memory>

#include "core/bytes.h"
#include "core/list.h"
#include "core/result.h"
#include "kernels/kernels.h"
#include "pipeline/session/tile_source.h"
#include "pipeline/session/value_check.h"
#include "pipeline/task/task.h"
#include "pipeline/task/tensor_scales.h"

namespace wasmquant {

/// What the encoders of a tensor work with; all of it outlives them.
struct EncoderInput {
  const TensorTask& task;
  TileSource& source;
  const ValueCheck& check;
  const std::unique_ptr<TensorScales>& scales;  // null if tiles find their own; finished before a tile is encoded
};

/// Of one tile.
struct TileOutput {
  List<Bytes> slices;               // of each component, sized for the tile
  List<kernels::ErrorSums> errors;  // one per unit
};

class TileEncoder {
 public:
  virtual ~TileEncoder() = default;
  /// Fills the slices and adds the errors of an arranged tile. Errors: value-not-finite, value-overflow.
  virtual Status encode(const TileRange& tile, TileOutput& out) = 0;
};

std::unique_ptr<TileEncoder> row_encoder(const EncoderInput& in);          // codes in row tiles
std::unique_ptr<TileEncoder> column_encoder(const EncoderInput& in);       // codes in column tiles
std::unique_ptr<TileEncoder> value_encoder(const EncoderInput& in);        // values: simulated codes, casts
std::unique_ptr<TileEncoder> block_float_encoder(const EncoderInput& in);  // block dtypes
std::unique_ptr<TileEncoder> ggml_encoder(const EncoderInput& in);         // GGUF types

/// Stores values in F32, F16 or BF16, and what is read back of them in their place; clamps them first if the config
/// saturates.
void store_values(StorageDtype dtype, std::span<float> values, const ValueCheck& check, uint8_t* out);

}  // namespace wasmquant
