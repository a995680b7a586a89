// Which specs the format can store, the layout of a weight, and the quantization_config of the written layers.
#include "tools/compressed_tensors/compressed_tensors.h"

#include <algorithm>

#include "core/list.h"
#include "runtimes/transformers/loader_names.h"
#include "tools/compressed_tensors/compressed_tensors_arguments.h"
#include "tools/compressed_tensors/compressors.h"
#include "tools/compressed_tensors/converted_weights.h"
#include "tools/compressed_tensors/ignored_modules.h"

namespace wasmquant {
namespace {

bool is_row_scheme(const QuantizationSpec& spec, size_t dimensions) {
  const int64_t last = static_cast<int64_t>(dimensions) - 1;
  const int64_t axis = spec.ch_axis < 0 ? spec.ch_axis + static_cast<int64_t>(dimensions) : spec.ch_axis;
  if (spec.qscheme == QScheme::per_channel) return axis == 0;
  if (spec.qscheme == QScheme::per_group) return axis == last;
  return true;
}

// Whether the loader of that compressor accepts the spec: its dtype, and groups of its fixed size.
bool is_block_scaled(const QuantizationSpec& spec, uint64_t columns) {
  switch (compressor_of(spec, false)) {
    case Compressor::mxfp4_pack_quantized:
      return spec.dtype == Dtype::fp4 && spec.group_size == 32 && columns % 32 == 0;
    case Compressor::nvfp4_pack_quantized:
      return spec.dtype == Dtype::fp4 && spec.group_size == 16 && columns % 16 == 0;
    case Compressor::mxfp8_quantized:
      return spec.dtype == Dtype::fp8_e4m3 && spec.group_size == 32 && columns % 32 == 0;
    default:
      return false;
  }
}

// The feature that the format does not support; empty if it can store the weight.
std::string unsupported_part(const WeightDescription& weight, const QuantizationSpec& spec) {
  const DtypeInfo& dtype = info_of(spec.dtype);
  if (weight.layer_type != "Linear" || weight.shape.size() != 2)
    return text_of("a quantized layer of type {}", weight.layer_type.empty() ? "unknown" : weight.layer_type);
  if (!is_row_scheme(spec, weight.shape.size())) return text_of("{} with this scale layout", dtype.name);
  if (spec.zero_point_type == ZeroPointType::float32) return "fractional zero points";
  const uint64_t columns = weight.shape[1];
  if (spec.scale_format == ScaleFormat::e5m3) return "e5m3 scales";
  if (spec.scale_format != ScaleFormat::float32) {
    if (!is_block_scaled(spec, columns))
      return text_of("{} in groups of {} on rows of {}", dtype.name, spec.group_size, columns);
    return {};
  }
  if (spec.qscheme == QScheme::per_block && spec.dtype != Dtype::fp8_e4m3)
    return text_of("{} in blocks of {} by {}", dtype.name, spec.block_rows, spec.block_columns);
  if (compressor_of(spec, weight.is_unpacked) == Compressor::pack_quantized) {
    if (spec.qscheme == QScheme::per_tensor) return text_of("{} per tensor", dtype.name);
    if (!(*weight.stored)["whole_words"].is_null() && config::has_stored_zero_point(spec))
      return text_of("zero points of {} as compressed-tensors packed them before 0.18", dtype.name);
    // The library packs codes of any width, llm-compressor writes them; no runtime has kernels for them.
    if (!weight.is_stored && dtype.bits != 2 && dtype.bits != 4 && dtype.bits != 8)
      return text_of("{} words", dtype.name);
    if (config::has_stored_zero_point(spec) && 32 % dtype.bits != 0 && weight.shape[0] % 32 != 0)
      return text_of("zero points of {} for {} rows, which end inside a word", dtype.name, weight.shape[0]);
    if (spec.qscheme == QScheme::per_group && spec.group_size > 0 &&
        columns % static_cast<uint64_t>(spec.group_size) != 0)
      return text_of("{} in groups of {} on rows of {}, whose last group is short", dtype.name, spec.group_size,
                     columns);
  } else {
    if (spec.qscheme == QScheme::per_group) return text_of("{} per group", dtype.name);
    if (dtype.bits != 8 || (!dtype.is_integer && spec.dtype != Dtype::fp8_e4m3)) return std::string(dtype.name);
  }
  return {};
}

// The library's codes are signed; an unsigned dtype is the same grid shifted by 2^(bits-1).
int16_t shift_to_signed(const DtypeInfo& dtype) {
  return dtype.is_signed ? int16_t{0} : static_cast<int16_t>(-(1 << (dtype.bits - 1)));
}

// The last axis of inputs [tokens, features], as configs spell it.
bool is_last_axis(int64_t axis) { return axis == -1 || axis == 1; }

// Names of a layer in a group of several. Those of a conversion are the same for many layers.
void add_targets(json::Array& targets, const LayerPlan& layer, const transformers::Conversion* row) {
  const bool is_expert = row != nullptr && row->kind == transformers::Conversion::Kind::experts;
  if (!is_expert) targets.emplace_back(layer.layer);
  if (!is_expert && !layer.loader_layer.empty()) targets.emplace_back(layer.loader_layer);
  if (row == nullptr) return;
  const List<std::string> patterns = is_expert ? List<std::string>{std::string(kSingleExperts)} : target_patterns(*row);
  for (const std::string& pattern : patterns) {
    const auto is_it = [&](const json::Value& known) { return known.as_string() == pattern; };
    if (std::none_of(targets.begin(), targets.end(), is_it)) targets.emplace_back(pattern);
  }
}

json::Value group_of_plain_experts() {
  QuantizationSpec spec;
  spec.dtype = Dtype::fp8_e4m3;
  spec.qscheme = QScheme::per_channel;
  json::Value group;
  group.set("targets", json::Value(json::Array{json::Value(kSingleExperts)}));
  group.set("weights", config::compressed_tensors_arguments(spec, false));
  group.set("input_activations", nullptr);
  group.set("output_activations", nullptr);
  group.set("format", name_of(Compressor::float_quantized));
  return group;
}

void add_packed(WeightLayout& layout, const WeightDescription& weight) {
  const DtypeInfo& dtype = info_of(layout.spec.dtype);
  const uint64_t rows = layout.rows, columns = layout.columns;
  const uint64_t groups = layout.spec.qscheme == QScheme::per_group ? layout.granularity.blocks() : 1;
  const auto whole_words = static_cast<uint8_t>((*weight.stored)["whole_words"].as_integer());
  if (whole_words != 0) layout.bits = whole_words;
  layout.codes = whole_words != 0 ? CodeStorage::rows_whole_words : CodeStorage::rows_words;
  layout.code_offset = dtype.is_signed ? static_cast<int16_t>(1 << (layout.bits - 1)) : int16_t{0};
  add_component(layout, weight, Role::codes, "weight_packed", StorageDtype::I32,
                {rows, whole_words != 0 ? packing::whole_words_per_row(columns, layout.bits)
                                        : packing::words_per_row(columns, layout.bits)});
  add_component(layout, weight, Role::scale, "weight_scale", scale_storage(layout.spec), {rows, groups});
  add_component(layout, weight, Role::shape, "weight_shape", StorageDtype::I64, {2});
  if (weight.is_reordered)
    add_component(layout, weight, Role::column_group, "weight_g_idx", StorageDtype::I32, {columns});
  if (config::has_stored_zero_point(layout.spec)) {
    layout.zero_point = ZeroPointStorage::row_words;
    add_component(layout, weight, Role::zero_point, "weight_zero_point", StorageDtype::I32,
                  {packing::words_per_row(rows, dtype.bits), groups});
  }
}

void add_bytes(WeightLayout& layout, const WeightDescription& weight) {
  const DtypeInfo& dtype = info_of(layout.spec.dtype);
  const std::vector<uint64_t> scale_shape = layout.spec.qscheme == QScheme::per_block ? layout.granularity.scale_shape
                                            : layout.spec.qscheme == QScheme::per_channel
                                                ? std::vector<uint64_t>{layout.rows, 1}
                                                : std::vector<uint64_t>{1};
  layout.codes = CodeStorage::rows_bytes;
  layout.code_offset = dtype.is_integer ? shift_to_signed(dtype) : int16_t{0};
  add_component(layout, weight, Role::codes, "weight", dtype.is_integer ? StorageDtype::I8 : StorageDtype::F8_E4M3,
                weight.shape);
  add_component(layout, weight, Role::scale, "weight_scale", scale_storage(layout.spec), scale_shape);
  if (config::has_stored_zero_point(layout.spec)) {
    layout.zero_point = ZeroPointStorage::bytes;
    add_component(layout, weight, Role::zero_point, "weight_zero_point", StorageDtype::I8, scale_shape);
  }
}

void add_block_scaled(WeightLayout& layout, const WeightDescription& weight) {
  const bool is_fp4 = layout.spec.dtype == Dtype::fp4;
  layout.codes = is_fp4 ? CodeStorage::rows_bit_stream : CodeStorage::rows_bytes;
  add_component(layout, weight, Role::codes, is_fp4 ? "weight_packed" : "weight",
                is_fp4 ? StorageDtype::U8 : StorageDtype::F8_E4M3,
                {layout.rows, is_fp4 ? layout.columns / 2 : layout.columns});
  const bool is_nvfp4 = layout.spec.scale_format == ScaleFormat::e4m3;
  add_component(layout, weight, Role::scale, "weight_scale", is_nvfp4 ? StorageDtype::F8_E4M3 : StorageDtype::U8,
                layout.granularity.scale_shape);
  if (!is_nvfp4) return;
  layout.reciprocal_second_scale = true;
  add_component(layout, weight, Role::second_scale, "weight_global_scale", StorageDtype::F32, {1});
}

}  // namespace

Result<WeightLayout> CompressedTensors::layout(const WeightDescription& weight, const Stages& stages) const {
  const QuantizationSpec spec = with_source_scales(stages.front(), weight.source);
  TRY(layout, begin_layout(weight, {spec}));
  const DtypeInfo& dtype = info_of(spec.dtype);
  if (dtype.is_plain_cast()) return cast_layout(std::move(layout), weight);
  const std::string part = stages.size() > 1 ? "weights of two stages" : unsupported_part(weight, spec);
  if (!part.empty()) {
    return error_at(
        ErrorCode::format_unsupported, text_of("{}.weight", weight.layer),
        "compressed-tensors cannot store {}; it stores int2, int4, uint4, int8 and uint8 per channel or per group, "
        "int8, "
        "uint8 and fp8_e4m3 per tensor or per channel, fp8_e4m3 per block, and fp4 and fp8_e4m3 in the groups of "
        "mxfp4, nvfp4 and mxfp8. Change the spec, exclude the layer, or write quark or fake-quantized",
        part);
  }
  if (spec.scale_format != ScaleFormat::float32) {
    add_block_scaled(layout, weight);
  } else if (compressor_of(spec, weight.is_unpacked) == Compressor::pack_quantized) {
    add_packed(layout, weight);
  } else {
    add_bytes(layout, weight);
  }
  return std::move(layout);
}

bool CompressedTensors::choose_activation_storage(const WeightDescription& weight, ActivationStorage& storage) const {
  storage.spec = with_source_scales(storage.spec, weight.source);
  const DtypeInfo& dtype = info_of(storage.spec.dtype);
  storage.scale_shape = {1};
  storage.has_zero_point = config::has_stored_zero_point(storage.spec);
  storage.zero_point = StorageDtype::I8;
  storage.zero_offset = shift_to_signed(dtype);
  return storage.spec.qscheme == QScheme::per_tensor && (dtype.is_integer || storage.spec.dtype == Dtype::fp8_e4m3);
}

json::Value CompressedTensors::cache_scheme(const Stages& stages) const {
  const bool fits = stages.size() == 1 && are_static(stages) && stages.front().dtype == Dtype::fp8_e4m3 &&
                    stages.front().qscheme == QScheme::per_tensor;
  return fits ? config::compressed_tensors_arguments(stages.front(), true) : json::Value();
}

bool CompressedTensors::stores_input_scales(const Stages& inputs) const {
  const QuantizationSpec& spec = inputs.front();
  if (inputs.size() != 1 || (spec.dtype != Dtype::int8 && spec.dtype != Dtype::fp8_e4m3) || !spec.symmetric)
    return false;
  if (spec.qscheme == QScheme::per_group)
    return spec.dtype == Dtype::fp8_e4m3 && spec.scale_format == ScaleFormat::float32 && is_last_axis(spec.ch_axis);
  return spec.qscheme == QScheme::per_tensor || (spec.qscheme == QScheme::per_channel && is_last_axis(spec.ch_axis));
}

namespace {

struct Group {
  QuantizationSpec spec;
  bool is_unpacked;
  Stages inputs, outputs;
  json::Array targets;
};

// Layers by scheme. One scheme: every Linear that is not ignored. Several: each layer by exact name, which avoids precedence rules.
List<Group> groups_of(const List<LayerPlan>& layers, const families::ModelFamily& family) {
  List<Group> groups;
  const transformers::Conversions conversions(family);
  const bool have_one_spec = have_experts_one_spec(layers, family);
  for (const LayerPlan& layer : layers) {
    if (keeps_weight(layer)) continue;
    const QuantizationSpec& spec = layer.weight->front();
    auto group = std::find_if(groups.begin(), groups.end(), [&](const Group& g) {
      return g.spec == spec && g.is_unpacked == layer.is_unpacked && g.inputs == layer.inputs &&
             g.outputs == layer.outputs;
    });
    if (group == groups.end()) {
      groups.push_back({spec, layer.is_unpacked, layer.inputs, layer.outputs, {}});
      group = groups.end() - 1;
    }
    const transformers::Conversion* row = conversions.find(layer.layer);
    if (row != nullptr && row->kind == transformers::Conversion::Kind::experts && !have_one_spec) row = nullptr;
    add_targets(group->targets, layer, row);
  }
  if (groups.size() == 1) {
    groups.front().targets.clear();
    groups.front().targets.emplace_back("Linear");
  }
  return groups;
}

json::Value block_of(Group& group, std::string_view compressor) {
  const auto activations = [](const Stages& stages) {
    return stages.empty() ? json::Value() : config::compressed_tensors_arguments(stages.front(), true);
  };
  json::Value block;
  block.set("targets", std::move(group.targets));
  block.set("weights", config::compressed_tensors_arguments(group.spec, false));
  block.set("input_activations", activations(group.inputs));
  block.set("output_activations", activations(group.outputs));
  block.set("format", compressor);
  return block;
}

}  // namespace

json::Value CompressedTensors::quantization_config(const Config&, const List<LayerPlan>& layers,
                                                   const families::ModelFamily& family) const {
  List<Group> groups = groups_of(layers, family);
  json::Value config_groups{json::Object{}};
  std::string_view format;
  for (size_t i = 0; i < groups.size(); ++i) {
    const std::string_view compressor = name_of(compressor_of(groups[i].spec, groups[i].is_unpacked));
    format = i == 0 || format == compressor ? compressor : "mixed-precision";
    config_groups.set(text_of("group_{}", i), block_of(groups[i], compressor));
  }
  if (groups.empty()) return nullptr;
  if (has_plain_conversions(layers, family))
    config_groups.set(text_of("group_{}", groups.size()), group_of_plain_experts());
  json::Value block;
  block.set("quant_method", "compressed-tensors");
  block.set("format", format);
  block.set("quantization_status", "compressed");
  block.set("config_groups", std::move(config_groups));
  block.set("ignore", ignored_modules(layers, family));
  block.set("kv_cache_scheme", nullptr);
  block.set("global_compression_ratio", nullptr);
  block.set("sparsity_config", json::Object{});
  block.set("transform_config", json::Object{});
  block.set("version", "0.17.1");
  return block;
}

const CheckpointFormat& compressed_tensors_format() noexcept {
  static constexpr CompressedTensors format;
  return format;
}

}  // namespace wasmquant
