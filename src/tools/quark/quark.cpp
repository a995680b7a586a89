// Which specs the format can store, the layout of codes, scales and zero points, and the config block.
#include "tools/quark/quark.h"

#include <algorithm>

#include "config/dialects/write.h"
#include "core/list.h"

namespace wasmquant {
namespace {

// The feature that the format does not support; empty if it can store the weight.
std::string unsupported_part(const WeightDescription& weight, const WeightLayout& layout) {
  const QuantizationSpec& spec = layout.spec;
  const DtypeInfo& dtype = info_of(spec.dtype);
  if (weight.layer_type != "Linear")
    return text_of("a layer of type {}, whose scales no loader applies",
                   weight.layer_type.empty() ? "unknown" : weight.layer_type);
  if (weight.shape.size() != 2) return text_of("{}-dimensional weights", weight.shape.size());
  const bool is_mx_integer = dtype.is_integer && spec.scale_format == ScaleFormat::e8m0;
  const bool has_place = dtype.is_integer ? dtype.bits == 8 || dtype.bits == 4 || (dtype.is_signed && dtype.bits < 4)
                                          : dtype.is_block() || (dtype.bits != 0 && dtype.bits <= 8);
  if (!has_place || (is_mx_integer && dtype.bits != 8)) return std::string(dtype.name);
  if (spec.dtype == Dtype::fp8_e5m3) return std::string(dtype.name);  // its loader takes the codes for values
  if (spec.zero_point_type == ZeroPointType::float32) return "fractional zero points";
  if (layout.stages.size() == 2) {
    const QuantizationSpec& second = layout.stages[1];
    if (second.is_scale_quant ? second.dtype != Dtype::fp8_e4m3 || dtype.is_integer : !dtype.is_integer)
      return text_of("{} whose {} are {}", dtype.name, second.is_scale_quant ? "scales" : "codes",
                     info_of(second.dtype).name);
  }
  const int64_t axis = spec.ch_axis < 0 ? spec.ch_axis + 2 : spec.ch_axis;
  const bool per_group = spec.qscheme == QScheme::per_group;
  if (per_group && axis != 1) return text_of("{} groups along axis {}", dtype.name, axis);
  if (spec.qscheme == QScheme::per_channel && axis != 0) return text_of("{} channels along axis {}", dtype.name, axis);
  if (spec.qscheme == QScheme::per_block && dtype.is_integer) return text_of("{} per block", dtype.name);
  const uint64_t columns = weight.shape[1];
  if (!dtype.is_integer && !dtype.is_block() && columns * dtype.bits % 8 != 0)
    return text_of("{} rows of {} elements, which do not fill bytes", dtype.name, columns);
  if (dtype.is_block() && columns % layout.granularity.block != 0)  // the bytes would not tell where the row ends
    return text_of("{} rows of {} elements, which blocks of {} do not divide", dtype.name, columns,
                   layout.granularity.block);
  // AMD Quark's loader takes all codes of the words for columns; those of groups are words of rows, which scales count.
  if (dtype.bits == 4 && dtype.is_integer && !per_group && columns % 8 != 0)
    return text_of("{} rows of {} elements, which do not fill 32-bit words, without groups", dtype.name, columns);
  if (dtype.bits == 3 && columns % 8 != 0)
    return text_of("int3 rows of {} elements (a multiple of 8 is needed)", columns);
  if (dtype.bits == 2 && !per_group) return "int2 other than per group";
  return {};
}

// As Quark exports: in the arithmetic of the weight, which has no effect on powers of two, and with codes of weights
// that freeze() has rounded before, so that the zero point comes after.
QuantizationSpec as_exported(QuantizationSpec spec, StorageDtype source) {
  const DtypeInfo& dtype = info_of(spec.dtype);
  if (spec.is_scale_quant || dtype.is_plain_cast() || dtype.is_block()) return spec;
  const bool has_16_bits = source == StorageDtype::BF16 || source == StorageDtype::F16;
  const bool rounds = spec.scale_format == ScaleFormat::float32 || spec.scale_format == ScaleFormat::e5m3;
  if (spec.grid.arithmetic == Arithmetic::by_format && has_16_bits && rounds) spec.grid.arithmetic = Arithmetic::weight;
  if (spec.grid.zero_point_order == ZeroPointOrder::by_path && dtype.is_integer && !spec.symmetric)
    spec.grid.zero_point_order = ZeroPointOrder::after_rounding;
  return spec;
}

Stages as_exported(Stages stages, StorageDtype source) {
  for (QuantizationSpec& stage : stages) stage = as_exported(stage, source);
  return stages;
}

// AMD Quark's loader divides by the group size, -1 among them.
QuantizationSpec with_group_size(QuantizationSpec spec, uint64_t columns) {
  if (spec.qscheme == QScheme::per_group && spec.group_size == -1) spec.group_size = static_cast<int64_t>(columns);
  return spec;
}

bool is_progressive(const WeightLayout& layout) {
  return layout.stages.size() == 2 && !layout.stages[1].is_scale_quant;
}

// Scales of integer codes, and those of a preceding stage.
void add_scale(WeightLayout& layout, const WeightDescription& weight, const std::vector<uint64_t>& shape) {
  const bool second = is_progressive(layout);
  if (second)
    add_component(layout, weight, Role::second_scale, "weight_scale", StorageDtype::F32, std::vector<uint64_t>{});
  add_component(layout, weight, Role::scale, second ? "weight_scale_2" : "weight_scale", scale_storage(layout.spec),
                shape);
}
void add_zero_point(WeightLayout& layout, const WeightDescription& weight, StorageDtype dtype,
                    const std::vector<uint64_t>& shape) {
  add_component(layout, weight, Role::zero_point, is_progressive(layout) ? "weight_zero_point_2" : "weight_zero_point",
                dtype, shape);
}

// Scales and zero points of integer codes that are not packed into words.
void add_scales(WeightLayout& layout, const WeightDescription& weight, StorageDtype zero_point,
                const std::vector<uint64_t>& scale_shape) {
  add_scale(layout, weight, scale_shape);
  layout.zero_point = zero_point == StorageDtype::I32 ? ZeroPointStorage::int32 : ZeroPointStorage::bytes;
  add_zero_point(layout, weight, zero_point, scale_shape);
}

StorageDtype float_storage(Dtype dtype) {
  switch (dtype) {
    case Dtype::fp8_e4m3:
      return StorageDtype::F8_E4M3;
    case Dtype::fp8_e5m2:
      return StorageDtype::F8_E5M2;
    case Dtype::fp8_e4m3fnuz:
      return StorageDtype::F8_E4M3FNUZ;
    case Dtype::fp8_e5m2fnuz:
      return StorageDtype::F8_E5M2FNUZ;
    case Dtype::int8:
      return StorageDtype::I8;
    default:
      return StorageDtype::U8;
  }
}

// Floats, MX integers and block dtypes: unpacked rows or bit streams, scales in their formats.
void add_unpacked(WeightLayout& layout, const WeightDescription& weight) {
  const QuantizationSpec& spec = layout.spec;
  const DtypeInfo& dtype = info_of(spec.dtype);
  if (dtype.is_block()) {
    const BlockFloatFormat format = block_float_of(spec.dtype, static_cast<uint32_t>(layout.granularity.block));
    layout.codes = CodeStorage::rows_block_float;
    add_component(layout, weight, Role::codes, "weight", StorageDtype::U8,
                  {layout.rows, packing::block_row_bytes(layout.columns, format)});
    return;
  }
  layout.codes = dtype.bits == 8 ? CodeStorage::rows_bytes : CodeStorage::rows_bit_stream;
  add_component(layout, weight, Role::codes, "weight", float_storage(spec.dtype),
                {layout.rows, layout.columns * dtype.bits / 8});
  const std::vector<uint64_t>& scales = layout.granularity.scale_shape;
  const bool quantized_scales = layout.stages.size() == 2;  // fp8_e4m3, under a float32 scale
  switch (quantized_scales ? ScaleFormat::e4m3 : spec.scale_format) {
    case ScaleFormat::float32:
      add_component(layout, weight, Role::scale, "weight_scale", scale_storage(spec), scales);
      return;
    case ScaleFormat::e4m3:
      add_component(layout, weight, Role::scale, "weight_scale", StorageDtype::F8_E4M3, scales);
      add_component(layout, weight, Role::second_scale, "weight_scale_2", StorageDtype::F32, std::vector<uint64_t>{});
      return;
    case ScaleFormat::e8m0:
    case ScaleFormat::e5m3:
      add_component(layout, weight, Role::scale, "weight_scale", StorageDtype::U8, scales);
      return;
  }
}

// Integers: codes along the rows, or transposed in groups.
void add_integers(WeightLayout& layout, const WeightDescription& weight) {
  const QuantizationSpec& spec = layout.spec;
  const DtypeInfo& dtype = info_of(spec.dtype);
  const uint64_t rows = layout.rows, columns = layout.columns;
  const bool per_group = spec.qscheme == QScheme::per_group;
  const uint64_t lines = per_group ? columns : rows, across = per_group ? rows : columns;  // as the codes are stored
  const uint64_t groups = layout.granularity.blocks();
  const std::vector<uint64_t> row_scales = per_group                              ? std::vector<uint64_t>{rows, groups}
                                           : spec.qscheme == QScheme::per_channel ? std::vector<uint64_t>{rows}
                                                                                  : std::vector<uint64_t>{};
  const std::vector<uint64_t> scales = per_group ? std::vector<uint64_t>{groups, rows} : row_scales;
  switch (dtype.bits) {
    case 8: {
      const StorageDtype storage = dtype.is_signed ? StorageDtype::I8 : StorageDtype::U8;
      layout.codes = per_group ? CodeStorage::columns_bytes : CodeStorage::rows_bytes;
      add_component(layout, weight, Role::codes, "weight", storage, {lines, across});
      add_scales(layout, weight, storage, scales);
      return;
    }
    case 4: {
      layout.codes = per_group ? CodeStorage::columns_nibble_words : CodeStorage::rows_nibble_words;
      add_component(layout, weight, Role::codes, "weight", StorageDtype::I32,
                    {lines, packing::words_per_row(across, 4)});
      add_scale(layout, weight, scales);
      layout.zero_point = ZeroPointStorage::nibble_words;
      const uint64_t words = spec.qscheme == QScheme::per_tensor ? 1 : packing::words_per_row(rows, 4);
      add_zero_point(layout, weight, StorageDtype::I32,
                     per_group ? std::vector<uint64_t>{groups, words} : std::vector<uint64_t>{words});
      return;
    }
    case 3:
      layout.codes = CodeStorage::rows_bit_stream;
      add_component(layout, weight, Role::codes, "weight", StorageDtype::U8, {rows, columns * 3 / 8});
      add_scales(layout, weight, StorageDtype::I8, row_scales);
      return;
    default:  // int2
      layout.codes = CodeStorage::columns_int32;
      add_component(layout, weight, Role::codes, "weight", StorageDtype::I32, {columns, rows});
      add_scales(layout, weight, StorageDtype::I32, scales);
      return;
  }
}

}  // namespace

Result<WeightLayout> Quark::layout(const WeightDescription& weight, const Stages& stages) const {
  TRY(layout, begin_layout(weight, as_exported(stages, weight.source)));
  for (QuantizationSpec& stage : layout.stages) stage = with_group_size(stage, layout.columns);
  layout.spec = with_group_size(layout.spec, layout.columns);
  const QuantizationSpec& spec = layout.spec;
  const DtypeInfo& dtype = info_of(spec.dtype);
  if (dtype.is_plain_cast()) return cast_layout(std::move(layout), weight);
  // AMD Quark cuts rows of integers into groups of columns / scales, and of floats it expects as many scales as whole groups.
  if (spec.qscheme == QScheme::per_group && !dtype.is_block() && layout.columns % layout.granularity.block != 0)
    return error_at(ErrorCode::group_size_invalid, text_of("{}.weight", weight.layer),
                    "the quark format cannot store {} in groups of {} on rows of {}, whose last group is short; use a "
                    "group size that divides them, exclude the layer, or write fake-quantized",
                    dtype.name, layout.granularity.block, layout.columns);
  if (const std::string part = unsupported_part(weight, layout); !part.empty()) {
    return error_at(
        ErrorCode::format_unsupported, text_of("{}.weight", weight.layer),
        "the quark format cannot store {}; it stores int2, int3, int4, uint4, int8, uint8, fp8, fp6, fp4 and block "
        "dtypes, "
        "with scales per tensor, per channel of axis 0 or per group along the last axis. Change the spec, exclude the "
        "layer, or write fake-quantized",
        part);
  }
  layout.order = weight.pack_method == PackMethod::order ? packing::WordOrder::order : packing::WordOrder::reorder;

  if (!dtype.is_integer || spec.scale_format == ScaleFormat::e8m0) {
    add_unpacked(layout, weight);
    return std::move(layout);
  }
  add_integers(layout, weight);
  return std::move(layout);
}

bool Quark::choose_activation_storage(const WeightDescription& weight, ActivationStorage& storage) const {
  storage.spec = with_known_arithmetic(as_exported(storage.spec, weight.source), weight.source);
  return true;
}

json::Value Quark::quantization_config(const Config& config, const List<LayerPlan>& layers,
                                       const families::ModelFamily& family) const {
  List<config::ExportedLayer> exported;
  exported.reserve(layers.size());
  for (const LayerPlan& layer : layers) {
    const Stages* const weight = layer.weight->empty() ? nullptr : &layer.weight.get();
    exported.push_back({layer.layer, layer.layer_type, weight, &layer.inputs});
    if (!layer.loader_layer.empty()) exported.push_back({layer.loader_layer, layer.layer_type, weight, &layer.inputs});
  }
  // Loaders make a quantized layer of every Linear module that is not excluded, and a tied head has no codes.
  for (const std::string_view head : heads_without_tensor(layers, family))
    exported.push_back({head, "Linear", nullptr});
  const bool has_static = std::any_of(layers.begin(), layers.end(), has_activation_scales);
  return config::quantization_config(
      config, exported, {config.export_info.value_or(ExportInfo{}).pack_method, WeightFormat::real_quantized},
      has_static);
}

const CheckpointFormat& quark_format() noexcept {
  static constexpr Quark format;
  return format;
}

}  // namespace wasmquant
