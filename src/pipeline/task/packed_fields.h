// The fields of a packed task, struct by struct, once for writing and reading, and each enum's last valid value.
// Component names are the plan's only; is_float32 is only set in memory.
#pragma once
#include <tuple>

#include "pipeline/task/task.h"

namespace wasmquant {

inline auto fields_of(RoundingGrid& grid) {
  return std::tie(grid.divisor, grid.threshold_rounding, grid.zero_point_order, grid.arithmetic, grid.narrow,
                  grid.sign_by_data, grid.divides, grid.max_includes_zero, grid.zero_point_of_unfloored,
                  grid.pads_groups, grid.smallest_scale, grid.smallest_threshold, grid.smallest_max);
}

inline auto fields_of(ObserverOptions& options) {
  return std::tie(options.bins, options.percentile, options.first_candidate, options.votes, options.tail_percent,
                  options.momentum, options.search, options.candidates, options.range_margin, options.norm,
                  options.iterations, options.weighted, options.relative_margin);
}

inline auto fields_of(QuantizationSpec& spec) {
  return std::tie(spec.dtype, spec.qscheme, spec.ch_axis, spec.group_size, spec.block_rows, spec.block_columns,
                  spec.symmetric, spec.is_dynamic, spec.round_method, spec.scale_type, spec.scale_format,
                  spec.scale_calculation_mode, spec.zero_point_type, spec.scale_sign, spec.scale_refit, spec.observer,
                  spec.exponent_bits, spec.mantissa_bits, spec.is_scale_quant, spec.grid, spec.observer_options);
}

inline auto fields_of(Granularity& g) {
  return std::tie(g.outer, g.axis, g.inner, g.block, g.outer_block, g.split_outer, g.split_inner, g.last,
                  g.scale_shape);
}

inline auto fields_of(Component& component) {
  return std::tie(component.role, component.dtype, component.shape, component.bytes);
}

inline auto fields_of(WeightLayout& layout) {
  return std::tie(layout.shape, layout.rows, layout.columns, layout.source_transposed, layout.source, layout.spec,
                  layout.stages, layout.granularity, layout.codes, layout.bits, layout.code_offset, layout.zero_offset,
                  layout.order, layout.whole_lines, layout.reads_group_index, layout.reciprocal_second_scale,
                  layout.zero_point, layout.components, layout.is_stored, layout.matrix_rows, layout.factor,
                  layout.scale_block, layout.scale_offset);
}

inline auto fields_of(Location& at) { return std::tie(at.file, at.offset); }

inline auto fields_of(ValueTransform& change) {
  return std::tie(change.interleaved_rows, change.is_transposed, change.adds_one, change.inverse);
}

inline auto fields_of(ChannelFactors& factors) {
  return std::tie(factors.inner, factors.cycle, factors.repeat, factors.values);
}

inline auto fields_of(TensorTask& task) {
  return std::tie(task.name, task.source, task.source_bytes, task.source_pitch, task.quantized, task.components,
                  task.is_copy, task.layout, task.is_varints, task.by_columns, task.change, task.factors, task.padding,
                  task.non_finite, task.importance, task.is_observed, task.joined, task.tile_lines, task.tiles);
}

inline constexpr std::tuple kLastValues{true,
                                        Arithmetic::float16,
                                        static_cast<Dtype>(kDtypes.size() - 1),
                                        static_cast<ObserverId>(kObservers.size() - 1),
                                        static_cast<StorageDtype>(kStorageDtypes.size() - 1),
                                        CodeStorage::lookup_nibbles,
                                        NonFinite::saturate,
                                        QScheme::per_block,
                                        Role::scale_of_scales,
                                        RoundMethod::half_away,
                                        ScaleCalculationMode::ceil,
                                        ScaleDivisor::code_count,
                                        ScaleFormat::e5m3,
                                        ScaleSign::signed_by_extreme,
                                        ScaleType::float8_e8m0fnu,
                                        SearchMethod::interval,
                                        ThresholdRounding::ceil_unfloored,
                                        Votes::last_batch,
                                        ZeroPointOrder::after_rounding,
                                        ZeroPointStorage::bit_stream,
                                        ZeroPointType::float32,
                                        packing::WordOrder::reorder};

}  // namespace wasmquant
