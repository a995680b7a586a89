// The storage layout of one weight in a checkpoint: which tensors it becomes and how codes, scales and zero points are
// arranged in them. Pure data, chosen by a checkpoint format (checkpoint_format.h) and executed by pack_tile.cpp.
//
// The weight is a matrix [rows, columns], columns = its last dimension, processed in tiles: whole rows, or whole
// columns if codes are stored transposed, so that a tile's share of every component is one contiguous byte range.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/spec/spec.h"
#include "core/list.h"
#include "core/result.h"
#include "numeric/storage_dtype.h"
#include "packing/packing.h"
#include "quantize/granularity.h"
#include "quantize/qparams.h"

namespace wasmquant {

/// shape and group_index are known before any weight is read: I64 dimensions; I32, the group of each column.
/// column_group is the same where calibration chooses the groups, or has chosen them.
/// bias: a float per scale, added to the scaled code (biased_codes.h). Read-only layouts: column_factor, a float per column; lookup,
/// F32 [16], the value of each code; scale_lookup, F32 [256], and scale_of_scales, F32, of quantized scales.
enum class Role : uint8_t {
  codes,
  scale,
  second_scale,
  zero_point,
  shape,
  group_index,
  column_group,
  bias,
  column_factor,
  lookup,
  scale_lookup,
  scale_of_scales
};
/// Whether the component's bytes are known before any weight is read.
constexpr bool is_known(Role role) { return role == Role::shape || role == Role::group_index; }
/// Whether every tile needs all of it.
constexpr bool is_of_whole_tensor(Role role) {
  return role == Role::second_scale || role == Role::column_group || role == Role::column_factor ||
         role == Role::lookup || role == Role::scale_lookup || role == Role::scale_of_scales;
}

/// One tensor of the file.
struct Component {
  Role role = Role::codes;
  std::string name_part;  // the name, or if `follows_layer`, what comes after the layer's: the same for many weights
  StorageDtype dtype = StorageDtype::F32;
  std::vector<uint64_t> shape;
  uint64_t bytes = 0;
  bool follows_layer = false;
  uint64_t varint_bytes = 0;  // read only: each byte is stored as a varint, and they take this many; 0: as it is

  /// The whole name, in the layer of this name.
  std::string name_in(std::string_view layer) const {
    return follows_layer ? std::string(layer).append(name_part) : name_part;
  }
  /// Sets the whole name, which may begin with that of the layer.
  void set_name(std::string_view whole, std::string_view layer) {
    follows_layer = whole.starts_with(layer);
    name_part = whole.substr(follows_layer ? layer.size() : 0);
  }

  friend bool operator==(const Component&, const Component&) = default;
};

/// Another dtype of the same shape, such as scales in the model's own dtype.
void set_dtype(Component& component, StorageDtype dtype) noexcept;
/// "F32 [4096, 32]", for messages.
std::string describe(StorageDtype dtype, const std::vector<uint64_t>& shape);

/// How codes are stored.
enum class CodeStorage : uint8_t {
  source_values,      // values after quantize-dequantize in the weight's own dtype
  cast_values,        // values in bfloat16 or float16
  rows_bytes,         // [rows, columns], one byte a code
  rows_words,         // [rows, ceil(columns * bits / 32)] int32, element i in bits i*bits.. of its row
  rows_whole_words,   // [rows, ceil(columns / (32 / bits))] int32, each beginning with a code. Read only
  rows_nibble_words,  // [rows, ceil(columns / 8)] int32, eight nibbles in `order`
  rows_bit_stream,    // [rows * columns * bits / 8] bytes, row after row, least significant bit first (fp4: low nibble
                      // first)
  rows_blocks,        // [rows, stored_blocks(), block * bits / 8] bytes: a bit stream, padded with the zero point to
                      // whole blocks; codes of 2, 4 or 8 bits
  rows_block_float,   // [rows, blocks of packing::block_row_bytes], exponents and shifts among the codes
  columns_bytes,      // [columns, rows], one byte a code
  columns_nibble_words,  // [columns, ceil(rows / 8)] int32, eight nibbles in `order`
  columns_int32,         // [columns, rows] int32, one code each
  columns_words,     // [columns * bits / 32, rows] int32: a row's codes are a bit stream down the words, low bits first
  ggml_rows,         // [rows, columns] in blocks of a GGUF type, scales among the codes
  row_pair_nibbles,  // [rows / 2, columns] bytes: two rows in each, the first in the low nibble. Read only
  lookup_nibbles,    // bytes of two table indices, the first in the high nibble. Read only
};

/// Whether columns of codes stored this way can belong to the groups of an index.
constexpr bool may_have_group_index(CodeStorage codes) {
  return codes == CodeStorage::columns_words || codes == CodeStorage::rows_words ||
         codes == CodeStorage::rows_whole_words;
}

/// How zero points are stored.
enum class ZeroPointStorage : uint8_t {
  none,
  bytes,         // one byte each, arranged like the scales
  row_words,     // [ceil(rows * bits / 32), groups] int32: packed along the rows of the scale matrix
  nibble_words,  // int32, eight nibbles in `order` along the last axis of the scale's arrangement
  int32,         // one int32 each, arranged like the scales
  row_bits,      // [rows, ceil(stored_blocks() * bits / 8)] bytes: a bit stream for each row
  bit_stream,    // bytes: one bit stream, arranged like the scales
};

/// The layout of one weight.
struct WeightLayout {
  std::vector<uint64_t> shape;
  uint64_t rows = 0, columns = 0;
  bool source_transposed = false;  // the source is stored as the matrix [columns, rows]
  StorageDtype source = StorageDtype::F32;
  QuantizationSpec spec;  // that of the codes
  Stages stages;          // if two stages make the codes (quantize/stages.h); else empty
  Granularity granularity;

  CodeStorage codes = CodeStorage::source_values;
  uint8_t bits = 8;         // of a stored code
  int16_t code_offset = 0;  // stored code = code + code_offset; the zero point has the same offset
  int16_t zero_offset = 0;  // added to code_offset for stored zero points
  uint64_t block = 0;       // rows_blocks: codes of a stored block, each with a scale: blocks that share one repeat it
  packing::WordOrder order = packing::WordOrder::order;
  uint64_t whole_lines = 1;              // a tile has a multiple of this many lines; ggml_rows, source_values
  bool reads_group_index = false;        // columns belong to the groups of the stored index; where values are read
  bool reciprocal_second_scale = false;  // what is stored is 1 / second scale
  ZeroPointStorage zero_point = ZeroPointStorage::none;
  List<Component> components;

  bool is_stored = false;  // no second scale has to be found first: scales are part of tiles

  // Read-only layouts.
  uint64_t matrix_rows = 0;  // a line is a matrix with this many rows, transposed to give its values; 0: it is not
  float factor = 1.0f;       // applied to values last
  uint32_t scale_block = 0;  // lookup_nibbles: number of quantized scales per scale_of_scales ...
  float scale_offset = 0;    // ... and this is added to them

  Stages all_stages() const { return stages.empty() ? Stages{spec} : stages; }
  bool column_tiles() const noexcept {
    return codes == CodeStorage::columns_bytes || codes == CodeStorage::columns_nibble_words ||
           codes == CodeStorage::columns_int32 || codes == CodeStorage::columns_words;
  }
  /// rows_blocks: the blocks of a row.
  uint64_t stored_blocks() const noexcept { return columns / block + (columns % block != 0); }
  /// Number of rows (or columns).
  uint64_t lines() const noexcept { return column_tiles() ? columns : rows; }
  /// Elements of one line.
  uint64_t line_elements() const noexcept { return column_tiles() ? rows : columns; }
  /// Every tile except the last has a multiple of this many lines.
  uint64_t line_multiple() const noexcept;
  /// The length of each scale's run of elements, if each is inside one line of a tile, or one tile has whole runs of
  /// lines, and the scale's bytes are in that tile's byte ranges. Otherwise scales belong to the whole tensor.
  std::optional<uint64_t> run_in_tile() const noexcept;
  bool scales_in_tiles() const noexcept { return run_in_tile().has_value(); }

  friend bool operator==(const WeightLayout&, const WeightLayout&) = default;
};

/// A tile: lines [begin, end) of the layout.
struct TileRange {
  uint64_t begin = 0, end = 0;
  uint64_t count() const noexcept { return end - begin; }
};

/// A tile's share of one component, in bytes from the component's start.
struct Slice {
  uint64_t offset = 0, bytes = 0;
};
/// Scales that cover the whole tensor are written with the first tile ...
Slice slice_of(const WeightLayout& layout, const Component& component, const TileRange& tile) noexcept;
/// ... and needed for every tile when reading.
Slice slice_to_read(const WeightLayout& layout, const Component& component, const TileRange& tile) noexcept;

/// The number of scales that pack_tile and unpack_tile take for a tile: those of its lines in internal scale order (row
/// tiles [lines, groups]; column tiles [rows, groups of the tile]); all scales if not scales_in_tiles.
uint64_t tile_scale_count(const WeightLayout& layout, const TileRange& tile) noexcept;

/// The scale as it is read back: storage rounds it, and 8-bit formats have a smallest one. Codes must be chosen for it.
float storable_scale(const WeightLayout& layout, float scale, float second_scale) noexcept;

/// Writes a tile's byte range of every component. `codes` [lines of the tile as rows x columns], one byte each;
/// `slices` parallel to components. `second_scale`: of scale_format e4m3, or of the other stage of two. `scratch`: one
/// byte per element, for transposed layouts. Not for source_values, cast_values, rows_block_float and read-only
/// storage.
void pack_tile(const WeightLayout& layout, const TileRange& tile, const uint8_t* codes,
               std::span<const QParams> qparams, float second_scale, uint8_t* scratch,
               std::span<uint8_t* const> slices) noexcept;
/// The reverse; not for lookup_nibbles (lookup_codes.h). Biases become zero points of `qparams`.
void unpack_tile(const WeightLayout& layout, const TileRange& tile, std::span<const uint8_t* const> slices,
                 uint8_t* scratch, uint8_t* codes, std::span<QParams> qparams) noexcept;
/// For layouts with reads_group_index: the codes of the tile, and the scales of all groups, [rows, groups].
void unpack_indexed_tile(const WeightLayout& layout, const TileRange& tile, std::span<const uint8_t* const> slices,
                         uint8_t* scratch, uint8_t* codes, std::span<QParams> qparams) noexcept;

}  // namespace wasmquant
