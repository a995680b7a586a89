// Self-contained work on one tensor: plans make tasks, packed_tasks.h transports them, sessions and decoders run them.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/checkpoint_format.h"
#include "checkpoint/layout/shared_value.h"
#include "core/list.h"
#include "numeric/strided_view.h"

namespace wasmquant {

/// File number and absolute offset of a component's first byte.
struct Location {
  uint32_t file = 0;
  uint64_t offset = 0;
};

/// Changes to a weight's values on the way into another family's file (gguf_conversion/conversion.h).
struct ValueTransform {
  uint32_t interleaved_rows = 0;  // rows per head, from halves to pairs (families/head_interleave.h); 0: none
  bool is_transposed = false;     // the source is [columns, rows]
  bool adds_one = false;
  bool inverse = false;  // decoding: removes these changes

  bool any() const noexcept { return interleaved_rows != 0 || is_transposed || adds_one; }
};

/// Factors of a weight's output channels. Source element e has factor e / repeat * cycle + e / inner % cycle.
struct ChannelFactors {
  uint64_t inner = 1, cycle = 0, repeat = 1;  // cycle 0: none
  std::vector<float> values;

  bool any() const noexcept { return cycle != 0; }
  /// Whether `elements` elements each have a factor.
  bool fits(uint64_t elements) const noexcept {
    return inner != 0 && repeat != 0 && elements % repeat == 0 && elements / repeat * cycle == values.size();
  }
  float of(uint64_t element) const noexcept { return values[element / repeat * cycle + element / inner % cycle]; }

  friend bool operator==(const ChannelFactors&, const ChannelFactors&) = default;
};

/// Numbers of a weight's rows, repeated, by which its values are multiplied or divided.
struct RowScales {
  bool divides = false;
  std::vector<float> values;

  friend bool operator==(const RowScales&, const RowScales&) = default;
};

struct StoredWeight;
class FileTensors;

/// A weight that is made of others, in rounds: a round joins the next elements of each part, as many in every round. The
/// shares of one round follow each other, or their elements are taken in turns.
struct Assembly {
  List<std::shared_ptr<const StoredWeight>> parts;  // none of them is made of others
  uint64_t rounds = 1;
  bool takes_turns = false;          // each round is one part; those behind the last part are zeros
  uint64_t columns = 0;              // of a round as a matrix
  bool is_first_transposed = false;  // the share of the first part is stored as [columns, rows]
  uint64_t interleaved = 0;          // elements taken from each part in turn; 0: whole shares
  bool is_transposed = false;        // the weight has each round's matrix as [columns, rows]
  List<StridedView> views;           // what the weight has of each round's elements, in this order; empty: all of them
  float addend = 0;
  List<RowScales> scales;     // one after another, each rounded to float32
  bool is_logarithm = false;  // the weight is -exp(values)

  bool any() const noexcept { return !parts.empty(); }

  friend bool operator==(const Assembly&, const Assembly&) = default;
};

struct TensorTask {
  std::string name;  // of the tensor, for messages
  Location source;   // quantizing and copying: place of the weight's bytes
  uint64_t source_bytes = 0;
  uint64_t source_pitch = 0;                      // elements between stored rows of the source; 0: contiguous
  std::shared_ptr<const StoredWeight> quantized;  // the source is codes, decoded tile by tile
  List<Location> components;                      // parallel to layout.components
  bool is_copy = false;  // bytes are copied: only the layout's component, the tensor itself, counts
  SharedValue<WeightLayout> layout;
  bool is_varints = false;              // the source is onnx::Encoding::varints, read whole
  SharedValue<Assembly> assembly;       // decoding: what the values are made of; components are not read then
  bool by_columns = false;              // decoding: a plain weight in column tiles, to match a transposed layout
  ValueTransform change;                // with CodeStorage::ggml_rows, and for decoding source_values
  SharedValue<ChannelFactors> factors;  // applied to values as they are read; for ONNX models
  uint32_t padding = 0;                 // zero bytes after the only component
  NonFinite non_finite = NonFinite::error;
  // Per input channel, for weighted observers and GGUF types; [experts, columns] for stacked experts; else empty.
  std::vector<float> importance;
  bool is_observed = false;  // tiles are observed before the first is run, even if they could find their own scales
  // Other weights with which this one shares the scale of the whole tensor (TensorScales::can_join); observed with it.
  // Only name, source and what reading needs; they have no components and one scale.
  List<std::shared_ptr<const TensorTask>> joined;
  std::shared_ptr<const FileTensors> file;  // calibration: what stores the weight in the place of this tensor, or null
  bool is_float32 = false;                  // tiles arrive as float32 for any source: weights changed in memory
  uint64_t tile_lines = 0;                  // lines of a tile (bytes, for a copy)
  uint64_t tiles = 0;

  /// Whether the source is [columns, rows].
  bool is_transposed() const noexcept { return change.is_transposed || layout->source_transposed; }
  bool has_column_tiles() const noexcept { return by_columns || layout->column_tiles(); }
  /// Tiles of all joined weights.
  uint64_t joined_tiles() const noexcept;
};

/// The format of weights that are stored as values.
inline constexpr std::string_view kPlainFormat = "fake-quantized";

/// A weight as a checkpoint stores it, for a decoder.
struct StoredWeight {
  std::string format;        // a checkpoint_format_named name, or an ONNX operator
  WeightDescription weight;  // the weight described to `format`
  TensorTask task;           // components located; no tiles if it is the source of another task
};

/// Whether values of the weight were rounded to codes: not if it is plain, or made of plain weights.
bool holds_codes(const StoredWeight& stored) noexcept;
/// Whether the task's source does.
inline bool holds_codes(const TensorTask& task) noexcept { return task.quantized && holds_codes(*task.quantized); }

/// One matrix of a stack along the first axis; null if `stack` has fewer, or its components cannot be separated.
std::shared_ptr<const StoredWeight> expert_of(const StoredWeight& stack, uint64_t expert, uint64_t experts);

/// Source bytes per tile. Row tiles stay in the L2 cache; column tiles are large because each read is a short piece.
struct TileBytes {
  uint64_t rows = uint64_t{1} << 20;
  uint64_t columns = uint64_t{16} << 20;
};

/// Elements of the largest tile: input, codes and output then stay below 1 GiB.
inline constexpr uint64_t kMaxTileElements = uint64_t{1} << 26;

/// Sets the lines per tile, reading at most that many bytes if possible, and the number of tiles.
void set_tiles(TensorTask& task, const TileBytes& tile_bytes) noexcept;
/// The range of one tile: lines (bytes, for a copy).
TileRange tile_range(const TensorTask& task, uint64_t tile) noexcept;

}  // namespace wasmquant
