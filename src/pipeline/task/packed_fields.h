// The fields of a packed task, struct by struct, once for writing and reading (a spec's are spec_fields.def), and each
// enum's last valid value.
// Component names are the plan's only; is_float32 is only set in memory.
#pragma once
#include <tuple>

#include "config/spec/vocabulary.h"
#include "pipeline/task/task.h"

namespace wasmquant {

/// Calls `use` with each field of a spec's structs.
template <class Use>
void each_field(RoundingGrid& grid, const Use& use) {
#define WASMQUANT_GRID_FIELD(type, name, ...) use(grid.name);
#include "config/spec/spec_fields.def"
}
template <class Use>
void each_field(ObserverOptions& options, const Use& use) {
#define WASMQUANT_OPTION_FIELD(type, name, ...) use(options.name);
#include "config/spec/spec_fields.def"
}
template <class Use>
void each_field(QuantizationSpec& spec, const Use& use) {
#define WASMQUANT_SPEC_FIELD(type, name, ...) use(spec.name);
#include "config/spec/spec_fields.def"
}

inline auto fields_of(Granularity& g) {
  return std::tie(g.outer, g.axis, g.inner, g.block, g.outer_block, g.split_outer, g.split_inner, g.last,
                  g.scale_shape);
}

inline auto fields_of(Component& component) {
  return std::tie(component.role, component.dtype, component.shape, component.bytes, component.varint_bytes);
}

inline auto fields_of(WeightLayout& layout) {
  return std::tie(layout.shape, layout.rows, layout.columns, layout.source_transposed, layout.source, layout.spec,
                  layout.stages, layout.granularity, layout.codes, layout.bits, layout.code_offset, layout.zero_offset,
                  layout.block, layout.order, layout.whole_lines, layout.reads_group_index,
                  layout.reciprocal_second_scale, layout.zero_point, layout.components, layout.is_stored,
                  layout.matrix_rows, layout.factor, layout.scale_block, layout.scale_offset);
}

inline auto fields_of(Location& at) { return std::tie(at.file, at.offset); }

inline auto fields_of(ValueTransform& change) {
  return std::tie(change.interleaved_rows, change.is_transposed, change.adds_one, change.inverse);
}

inline auto fields_of(StridedView& view) {
  return std::tie(view.offset, view.sizes[0], view.sizes[1], view.sizes[2], view.strides[0], view.strides[1],
                  view.strides[2]);
}

inline auto fields_of(RowScales& scales) { return std::tie(scales.divides, scales.values); }

inline auto fields_of(ChannelFactors& factors) {
  return std::tie(factors.inner, factors.cycle, factors.repeat, factors.values);
}

inline auto fields_of(Assembly& assembly) {
  return std::tie(assembly.parts, assembly.rounds, assembly.takes_turns, assembly.columns, assembly.is_first_transposed,
                  assembly.interleaved, assembly.is_transposed, assembly.views, assembly.addend, assembly.scales,
                  assembly.is_logarithm);
}

inline auto fields_of(TensorTask& task) {
  return std::tie(task.name, task.source, task.source_bytes, task.source_pitch, task.quantized, task.assembly,
                  task.components, task.is_copy, task.layout, task.is_varints, task.by_columns, task.change,
                  task.factors, task.padding, task.non_finite, task.importance, task.is_observed, task.joined,
                  task.tile_lines, task.tiles);
}

inline constexpr std::tuple kLastValues{
#define WASMQUANT_SPEC_ENUM(type, words, ...) static_cast<type>(config::words.size() - 1),
#include "config/spec/spec_fields.def"
    true,
    static_cast<Dtype>(kDtypes.size() - 1),
    static_cast<ObserverId>(kObservers.size() - 1),
    static_cast<StorageDtype>(kStorageDtypes.size() - 1),
    static_cast<RoundMethod>(config::kRoundMethods.size() - 1),
    CodeStorage::lookup_nibbles,
    Role::scale_of_scales,
    ZeroPointStorage::bit_stream,
    packing::WordOrder::reorder};

}  // namespace wasmquant
