// Which bytes of each component a tile owns.
#include "checkpoint/layout/weight_layout.h"

namespace wasmquant {
namespace {

// Scales of `lines` lines, if tiles have their own: a row, which may itself be a matrix, has several groups or is one
// scale; columns are whole groups.
uint64_t scales_of_lines(const WeightLayout& layout, uint64_t run, uint64_t lines) noexcept {
  return layout.column_tiles() ? layout.rows * (lines / run) : lines * (layout.columns / run);
}

// Whether a row's codes begin within a byte.
bool shares_bytes(const WeightLayout& layout) noexcept {
  return layout.codes == CodeStorage::rows_bit_stream && layout.columns * layout.bits % 8 != 0;
}

}  // namespace

std::optional<uint64_t> WeightLayout::run_in_tile() const noexcept {
  const auto run = granularity.run_length();
  const bool fits = run && columns % *run == 0 && (is_stored || spec.scale_format != ScaleFormat::e4m3);
  return fits ? run : std::nullopt;
}

uint64_t WeightLayout::line_multiple() const noexcept {
  if (codes == CodeStorage::ggml_rows || codes == CodeStorage::source_values) return whole_lines;
  if (column_tiles()) return run_in_tile().value_or(1);
  if (codes == CodeStorage::row_pair_nibbles) return 2;
  // Zero points packed along the rows, and byte streams, begin a new word only every few (8) rows.
  if (zero_point == ZeroPointStorage::row_words) return packing::codes_of_whole_words(bits);
  if (zero_point == ZeroPointStorage::nibble_words) return 8;
  if (zero_point == ZeroPointStorage::bit_stream || shares_bytes(*this)) return 8 / bits;
  return 1;
}

Slice slice_of(const WeightLayout& layout, const Component& component, const TileRange& tile) noexcept {
  const bool first = tile.begin == 0;
  const bool of_whole_tensor = is_known(component.role) || is_of_whole_tensor(component.role);
  const auto run = layout.run_in_tile();
  if (of_whole_tensor || (component.role != Role::codes && !run)) {
    return first ? Slice{0, component.bytes} : Slice{};
  }
  if (component.role == Role::zero_point && layout.zero_point == ZeroPointStorage::bit_stream &&
      !layout.column_tiles()) {
    const uint64_t row_bits = scales_of_lines(layout, *run, 1) * layout.bits;
    const uint64_t begin = tile.begin * row_bits / 8;
    return {begin, (tile.end * row_bits + 7) / 8 - begin};
  }
  if (component.role == Role::codes && shares_bytes(layout)) {
    const uint64_t row_bits = layout.columns * layout.bits, begin = tile.begin * row_bits / 8;
    return {begin, (tile.end * row_bits + 7) / 8 - begin};
  }
  // Each component is a matrix whose first axis advances with the lines; this many lines make one of its rows.
  uint64_t lines_per_row = 1;
  if (component.role == Role::codes) {
    if (layout.codes == CodeStorage::columns_words) lines_per_row = packing::codes_of_whole_words(layout.bits);
    if (layout.codes == CodeStorage::row_pair_nibbles) lines_per_row = 2;
  } else {
    if (layout.column_tiles()) {
      lines_per_row = *run;
    } else if (component.role == Role::zero_point && layout.zero_point == ZeroPointStorage::row_words) {
      lines_per_row = packing::codes_of_whole_words(layout.bits);
    } else if (component.role == Role::zero_point && layout.zero_point == ZeroPointStorage::nibble_words) {
      lines_per_row = 8;
    }
  }
  const uint64_t component_rows = (layout.lines() + lines_per_row - 1) / lines_per_row;
  const uint64_t row_bytes = component_rows == 0 ? 0 : component.bytes / component_rows;
  const uint64_t begin = tile.begin / lines_per_row, end = (tile.end + lines_per_row - 1) / lines_per_row;
  return {begin * row_bytes, (end - begin) * row_bytes};
}

Slice slice_to_read(const WeightLayout& layout, const Component& component, const TileRange& tile) noexcept {
  if (component.varint_bytes != 0) return {0, component.varint_bytes};
  if (component.role == Role::shape) return {};
  if (layout.reads_group_index && component.role != Role::codes) return {0, component.bytes};
  if (is_known(component.role)) return {};
  if (is_of_whole_tensor(component.role) || (component.role != Role::codes && !layout.scales_in_tiles()))
    return {0, component.bytes};
  return slice_of(layout, component, tile);
}

uint64_t tile_scale_count(const WeightLayout& layout, const TileRange& tile) noexcept {
  const auto run = layout.run_in_tile();
  return run ? scales_of_lines(layout, *run, tile.count()) : layout.granularity.scale_count();
}

}  // namespace wasmquant
