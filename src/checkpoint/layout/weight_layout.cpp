// Which bytes of each component a tile owns.
#include "checkpoint/layout/weight_layout.h"

namespace wasmquant {
namespace {

// Scales per row, which may itself be a matrix; 1 for per_channel and per_tensor.
uint64_t groups_per_row(const WeightLayout& layout) noexcept {
  if (layout.spec.qscheme != QScheme::per_group) return 1;
  return layout.scales_in_tiles() ? layout.columns / layout.granularity.contiguous_elements()
                                  : layout.granularity.blocks();
}

}  // namespace

bool WeightLayout::scales_in_tiles() const noexcept {
  const uint64_t contiguous = granularity.contiguous_elements();
  return contiguous != 0 && columns % contiguous == 0 && (is_stored || spec.scale_format != ScaleFormat::e4m3);
}

uint64_t WeightLayout::line_multiple() const noexcept {
  if (codes == CodeStorage::ggml_rows || codes == CodeStorage::source_values) return whole_lines;
  if (column_tiles()) return scales_in_tiles() ? granularity.block : 1;
  if (codes == CodeStorage::row_pair_nibbles) return 2;
  // Zero points packed along the rows, and byte streams, begin a new word only every 32 / bits (8) rows.
  if (zero_point == ZeroPointStorage::row_words) return 32 / bits;
  if (zero_point == ZeroPointStorage::nibble_words) return 8;
  if (zero_point == ZeroPointStorage::bit_stream) return 8 / bits;
  return 1;
}

Slice slice_of(const WeightLayout& layout, const Component& component, const TileRange& tile) noexcept {
  const bool first = tile.begin == 0;
  const bool of_whole_tensor = is_known(component.role) || is_of_whole_tensor(component.role);
  if (of_whole_tensor || (component.role != Role::codes && !layout.scales_in_tiles())) {
    return first ? Slice{0, component.bytes} : Slice{};
  }
  if (component.role == Role::zero_point && layout.zero_point == ZeroPointStorage::bit_stream &&
      !layout.column_tiles()) {
    const uint64_t row_bits = groups_per_row(layout) * layout.bits;
    const uint64_t begin = tile.begin * row_bits / 8;
    return {begin, (tile.end * row_bits + 7) / 8 - begin};
  }
  // Each component is a matrix whose first axis advances with the lines; this many lines make one of its rows.
  uint64_t lines_per_row = 1;
  if (component.role == Role::codes) {
    if (layout.codes == CodeStorage::columns_words) lines_per_row = layout.bits == 3 ? 32 : 32 / layout.bits;
    if (layout.codes == CodeStorage::row_pair_nibbles) lines_per_row = 2;
  } else {
    if (layout.column_tiles()) {
      lines_per_row = layout.granularity.block;
    } else if (component.role == Role::zero_point && layout.zero_point == ZeroPointStorage::row_words) {
      lines_per_row = 32 / layout.bits;
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
  if (component.role == Role::shape) return {};
  if (layout.reads_group_index && component.role != Role::codes) return {0, component.bytes};
  if (is_known(component.role)) return {};
  if (is_of_whole_tensor(component.role) || (component.role != Role::codes && !layout.scales_in_tiles()))
    return {0, component.bytes};
  return slice_of(layout, component, tile);
}

uint64_t tile_scale_count(const WeightLayout& layout, const TileRange& tile) noexcept {
  if (!layout.scales_in_tiles()) return layout.granularity.scale_count();
  if (layout.column_tiles()) return layout.rows * (tile.count() / layout.granularity.block);
  return tile.count() * groups_per_row(layout);
}

}  // namespace wasmquant
