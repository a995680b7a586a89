// One tensor's work, self-contained, so that any worker can do any part of it: plans make tasks, packed_tasks.h brings
// them to workers, sessions and decoders run them.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "checkpoint/checkpoint_format.h"
#include "core/list.h"

namespace wasmquant {

/// Where a component's bytes lie: file number and absolute offset of its first byte.
struct Location {
  uint32_t file = 0;
  uint64_t offset = 0;
};

/// What happens to a weight's values on their way into another family's file (gguf_conversion/conversion.h).
struct ValueChange {
  uint32_t interleaved_rows = 0;  // rows of a head, from halves to pairs (families/head_interleave.h); 0: none
  bool is_transposed = false;     // the source is [columns, rows]
  bool adds_one = false;
  bool reverts = false;  // decoding: the file has these changes, and its values lose them

  bool any() const noexcept { return interleaved_rows != 0 || is_transposed || adds_one; }
};

/// Factors of a weight's output channels. Element e of the source has number e / repeat * cycle + e / inner % cycle.
struct ChannelFactors {
  uint64_t inner = 1, cycle = 0, repeat = 1;  // cycle 0: there are none
  std::vector<float> values;

  bool any() const noexcept { return cycle != 0; }
  /// Whether each of `elements` elements has one.
  bool fit(uint64_t elements) const noexcept {
    return inner != 0 && repeat != 0 && elements % repeat == 0 && elements / repeat * cycle == values.size();
  }
  float of(uint64_t element) const noexcept { return values[element / repeat * cycle + element / inner % cycle]; }
};

struct StoredWeight;

struct TensorTask {
  std::string name;  // of the tensor, for messages
  Location source;   // quantizing and copying: where the weight's bytes are read
  uint64_t source_bytes = 0;
  uint64_t source_pitch = 0;  // elements from one stored row of the source to the next; 0: they follow each other
  std::shared_ptr<const StoredWeight> quantized;  // the source is codes: decoded on the way, tile by tile
  List<Location> components;                      // parallel to layout.components
  bool is_copy = false;  // bytes go over as they are: of the layout only the component counts, the tensor itself
  WeightLayout layout;
  bool is_varints = false;  // the source is onnx::Encoding::varints, and is read whole
  bool by_columns = false;  // decoding: tiles of a plain weight are columns, to go with those of a transposed layout
  ValueChange change;       // with CodeStorage::ggml_rows, and what decoders make of source_values
  ChannelFactors factors;   // multiply the values as they are read; of ONNX models
  uint32_t padding = 0;     // zero bytes that follow the only component
  NonFinite non_finite = NonFinite::error;
  // Of input channels, for weighted observers and GGUF types; of stacked experts [experts, columns]; else empty.
  std::vector<float> importance;
  bool is_float32 =
      false;  // tiles are brought as float32, whatever the source was: weights that were changed in memory
  uint64_t tile_lines = 0;  // lines of a tile (bytes, for a copy)
  uint64_t tiles = 0;

  /// The source lies as [columns, rows].
  bool is_transposed() const noexcept { return change.is_transposed || layout.source_transposed; }
  /// Decoding: tiles are columns.
  bool has_column_tiles() const noexcept { return by_columns || layout.column_tiles(); }
};

/// A weight as a checkpoint stores it, for a decoder.
struct StoredWeight {
  std::string format;        // of checkpoint_format_named, or of an ONNX operator
  WeightDescription weight;  // what `format` made the layout of
  TensorTask task;           // components located; without tiles where it is the source of another task
};

/// One of the matrices that are stacked along the first axis; null where `stack` does not hold so many, or its components
/// cannot be told apart.
std::shared_ptr<const StoredWeight> expert_of(const StoredWeight& stack, uint64_t expert, uint64_t experts);

/// Source bytes that a tile may have. Row tiles are small, to stay in the second-level cache from reading to packing;
/// column tiles are large, because each of their reads is one short piece of a row.
struct TileBytes {
  uint64_t rows = uint64_t{1} << 20;
  uint64_t columns = uint64_t{16} << 20;
};

/// Elements of the largest tile: its input, codes and output then stay below 1 GiB.
inline constexpr uint64_t kMaxTileElements = uint64_t{1} << 26;

/// Lines of a tile that reads at most that many bytes where that is possible, and the tiles they make.
void set_tiles(TensorTask& task, const TileBytes& tile_bytes) noexcept;
/// The range of one tile: lines (bytes, for a copy).
TileRange tile_range(const TensorTask& task, uint64_t tile) noexcept;

}  // namespace wasmquant
