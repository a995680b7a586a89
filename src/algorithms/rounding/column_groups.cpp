#include "algorithms/rounding/column_groups.h"

namespace wasmquant {

Result<size_t> columns_per_scale(const QuantizationSpec& spec, uint64_t rows, uint64_t columns) {
  TRY(g, granularity_of({rows, columns}, spec));
  if (g.scale_shape.empty()) return static_cast<size_t>(columns);  // one scale in all
  const bool is_group = spec.qscheme == QScheme::per_group;
  if (is_group && g.axis == columns && g.inner == 1) return static_cast<size_t>(g.block);
  if (!is_group && g.outer == 1 && g.axis == rows && g.inner == columns) return static_cast<size_t>(columns);
  return Error{ErrorCode::spec_invalid, "",
               "scales run along the wrong axis; the algorithm needs them per tensor, per row (per_channel, ch_axis 0) "
               "or per group of columns (per_group, ch_axis 1)"};
}

Granularity scale_per_row(uint64_t count, uint64_t columns) noexcept {
  Granularity g;
  g.outer = count;
  g.axis = g.block = columns;
  g.split_outer = g.split_inner = true;
  return g;
}

}  // namespace wasmquant
