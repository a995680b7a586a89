#include "pipeline/task/task.h"

#include <algorithm>
#include <numeric>

#include "pipeline/task/tiles.h"

namespace wasmquant {
void set_tiles(TensorTask& task, const TileBytes& limits) noexcept {
  const uint64_t tile_bytes = std::max<uint64_t>(
      !task.is_copy && (task.layout->column_tiles() || task.is_transposed()) ? limits.columns : limits.rows, 1);
  if (task.is_copy) {
    // Values to be multiplied must be whole.
    task.tile_lines = task.factors->any() ? (tile_bytes + 3) / 4 * 4 : tile_bytes;
    task.tiles = (task.source_bytes + task.tile_lines - 1) / task.tile_lines;
    return;
  }
  const WeightLayout& layout = task.layout;
  if (task.is_varints) {
    task.tile_lines = std::max<uint64_t>(layout.lines(), 1);
    task.tiles = 1;
    return;
  }
  if (task.quantized && task.quantized->task.layout->column_tiles() != layout.column_tiles()) {
    task.tile_lines = std::max<uint64_t>(layout.lines(), 1);  // across the source's tiles
    task.tiles = 1;
    return;
  }
  const bool is_widened = small_float_of(layout.source).has_value();  // the whole tile
  const uint64_t line_bytes = std::max<uint64_t>(
      is_widened ? layout.line_elements() * 4 : info_of(layout.source).bytes_of(layout.line_elements()), 1);
  uint64_t unit = unit_lines_of(layout);
  if (task.quantized) {
    const uint64_t whole = whole_source_lines(layout, task.quantized->task.layout);
    if (__builtin_mul_overflow(unit / std::gcd(unit, whole), whole, &unit))
      unit = std::max<uint64_t>(layout.lines(), 1);
  }
  task.tile_lines = std::max<uint64_t>(tile_bytes / line_bytes / unit, 1) * unit;
  task.tiles = (layout.lines() + task.tile_lines - 1) / task.tile_lines;
}

uint64_t TensorTask::joined_tiles() const noexcept {
  uint64_t count = 0;
  for (const auto& other : joined) count += other->tiles;
  return count;
}

TileRange tile_range(const TensorTask& task, uint64_t tile) noexcept {
  const uint64_t lines = task.is_copy      ? task.source_bytes
                         : task.by_columns ? task.layout->columns
                                           : task.layout->lines();
  const uint64_t begin = std::min(tile * task.tile_lines, lines);
  return {begin, std::min(begin + task.tile_lines, lines)};
}

bool holds_codes(const StoredWeight& stored) noexcept {
  const List<std::shared_ptr<const StoredWeight>>& parts = stored.task.assembly->parts;
  if (parts.empty()) return stored.format != kPlainFormat;
  return std::any_of(parts.begin(), parts.end(), [](const auto& part) { return holds_codes(*part); });
}

std::shared_ptr<const StoredWeight> expert_of(const StoredWeight& stack, uint64_t expert, uint64_t experts) {
  const CheckpointFormat* const format = checkpoint_format_named(stack.format);
  const WeightLayout& all = stack.task.layout;
  if (format == nullptr || stack.weight.shape.size() != 3 || stack.weight.shape[0] != experts) return nullptr;
  auto one = std::make_shared<StoredWeight>(stack);
  one->weight.shape[0] = 1;
  auto layout = format->layout(one->weight, all.all_stages());
  if (!layout || layout->components.size() != all.components.size()) return nullptr;
  if (stack.task.assembly->any()) {
    Assembly assembly = stack.task.assembly;
    if (assembly.rounds != experts || assembly.takes_turns) return nullptr;
    assembly.rounds = 1;
    for (auto& part : assembly.parts) {
      part = expert_of(*part, expert, experts);
      if (part == nullptr) return nullptr;
    }
    layout->whole_lines = layout->rows;
    one->task.assembly = std::move(assembly);
    one->task.layout = std::move(*layout);
    return one;
  }
  for (size_t c = 0; c < all.components.size(); ++c) {
    const Component& component = all.components[c];
    set_dtype(layout->components[c], component.dtype);
    if (is_of_whole_tensor(component.role) || is_known(component.role)) continue;
    if (component.shape.empty() || component.shape[0] != experts || component.bytes % experts != 0) return nullptr;
    one->task.components[c].offset += component.bytes / experts * expert;
  }
  one->task.layout = std::move(*layout);
  return one;
}

}  // namespace wasmquant
