#include "algorithms/rounding/column_groups.h"

#include "quantize/granularity.h"

namespace wasmquant {

Result<ColumnGroups> ColumnGroups::create(const QuantizationSpec& spec, uint64_t rows, uint64_t columns) {
  TRY(g, granularity_of({rows, columns}, spec));
  const auto height = static_cast<size_t>(rows), width = static_cast<size_t>(columns);
  if (g.scale_shape.empty()) return ColumnGroups(height, width, width, true);
  const bool is_group = spec.qscheme == QScheme::per_group;
  if (is_group && g.axis == columns && g.inner == 1)
    return ColumnGroups(height, width, static_cast<size_t>(std::min(g.block, columns)), false);
  if (!is_group && g.outer == 1 && g.axis == rows && g.inner == columns)
    return ColumnGroups(height, width, width, false);
  return Error{ErrorCode::spec_invalid, "",
               "scales run along the wrong axis; the algorithm needs them per tensor, per row (per_channel, ch_axis 0) "
               "or per group of columns (per_group, ch_axis 1)"};
}

}  // namespace wasmquant
