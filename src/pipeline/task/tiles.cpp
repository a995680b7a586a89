#include "pipeline/task/tiles.h"

#include <algorithm>
#include <numeric>

namespace wasmquant {
namespace {

// Approximate elements per unit: large enough to make sums cheap, small enough for the L2 cache.
constexpr uint64_t kUnitElements = 65536;
// Approximate columns per unit of a column tile.
constexpr uint64_t kUnitColumns = 128;

uint64_t round_up(uint64_t value, uint64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

}  // namespace

uint64_t source_lines(const WeightLayout& layout, uint64_t lines, const WeightLayout& source) noexcept {
  const uint64_t elements = layout.line_elements(), source_elements = source.line_elements();
  if (lines >= layout.lines() || elements == 0 || source_elements == 0) return std::max<uint64_t>(source.lines(), 1);
  return std::max<uint64_t>(lines * elements / source_elements, 1);
}

uint64_t whole_source_lines(const WeightLayout& layout, const WeightLayout& source) noexcept {
  const uint64_t elements = layout.line_elements(), all = std::max<uint64_t>(layout.lines(), 1);
  uint64_t whole;
  if (elements == 0 || __builtin_mul_overflow(source.line_elements(), source.line_multiple(), &whole)) return all;
  return std::clamp<uint64_t>(whole / std::gcd(whole, elements), 1, all);
}

uint64_t unit_lines_of(const WeightLayout& layout) noexcept {
  const uint64_t multiple = layout.line_multiple();
  if (layout.column_tiles()) return round_up(kUnitColumns, multiple);
  const uint64_t line = std::max<uint64_t>(layout.line_elements(), 1);
  return round_up(std::max<uint64_t>(kUnitElements / line, 1), multiple);
}

}  // namespace wasmquant
