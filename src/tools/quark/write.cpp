// One function for each object of Quark's config, from specs up to the whole.
#include "config/dialects/write.h"

#include <string>
#include <utility>

#include "config/spec/vocabulary.h"
#include "core/list.h"
#include "tools/quark/spec_numbers.h"

namespace wasmquant::config {

using json::Array;
using json::Object;
using json::Value;

namespace {

// Quark's default for a key that only concerns Quark's memory use.
constexpr int64_t kMaxInputNumel = 4 * 1024 * 1024;

// Out of line because it is called in many places.
void put(Object& members, const char* key, Value value) { members.emplace_back(key, std::move(value)); }

Value stages_to_json(const Stages& stages) {
  if (stages.empty()) return nullptr;
  if (stages.size() == 1) return to_json(stages.front());
  Array items;
  for (const QuantizationSpec& stage : stages) items.push_back(to_json(stage));
  return items;
}

Value layer_to_json(const LayerConfig& layer) {
  Object members;
  put(members, "input_tensors", stages_to_json(layer.input_tensors));
  put(members, "output_tensors", stages_to_json(layer.output_tensors));
  put(members, "weight", stages_to_json(layer.weight));
  put(members, "bias", stages_to_json(layer.bias));
  put(members, "target_device", nullptr);
  return members;
}

Value layers_to_json(const List<std::pair<std::string, LayerConfig>>& layers) {
  Object members;
  for (const auto& [name, layer] : layers) members.emplace_back(name, layer_to_json(layer));
  return members;
}

Value names_to_json(const List<std::string>& names) {
  Array items;
  for (const std::string& name : names) items.emplace_back(name);
  return items;
}

Value export_to_json(const ExportInfo& info) {
  Object members;
  put(members, "kv_cache_group", Array{});
  put(members, "min_kv_scale", 0.0);
  put(members, "pack_method", word_of(info.pack_method, kPackMethods));
  put(members, "weight_format", word_of(info.weight_format, kWeightFormats));
  put(members, "weight_merge_groups", nullptr);
  return members;
}

}  // namespace

Value to_json(const QuantizationSpec& spec) {
  const DtypeInfo& dtype = info_of(spec.dtype);
  const bool cast = dtype.is_plain_cast();
  // With e8m0 scales an integer is the element of Quark's dtype mx.
  const bool is_mx_integer = dtype.is_integer && spec.scale_format == ScaleFormat::e8m0;
  const bool has_format = spec.scale_format != ScaleFormat::float32 ||
                          (dtype.kind == DtypeKind::floating && spec.qscheme == QScheme::per_group);
  const bool has_axis = !cast && (spec.qscheme == QScheme::per_channel || spec.qscheme == QScheme::per_group);
  const auto unless_cast = [cast](Value value) { return cast ? Value(nullptr) : std::move(value); };
  const std::string_view observer = info_of(cast ? ObserverId::PlaceholderObserver : spec.observer).name;

  Object members;
  put(members, "dtype", is_mx_integer ? std::string_view("mx") : dtype.name);
  put(members, "is_dynamic", unless_cast(spec.is_dynamic));
  put(members, "qscheme", unless_cast(word_of(spec.qscheme, kQSchemes)));
  put(members, "ch_axis", has_axis ? Value(spec.ch_axis) : Value(nullptr));
  members.emplace_back("group_size",
                       !cast && spec.qscheme == QScheme::per_group ? Value(spec.group_size) : Value(nullptr));
  put(members, "block_size",
      spec.qscheme == QScheme::per_block
          ? Value(Array{Value(int64_t{spec.block_rows}), Value(int64_t{spec.block_columns})})
          : Value(nullptr));
  put(members, "symmetric", unless_cast(spec.symmetric));
  put(members, "round_method", unless_cast(word_of(spec.round_method, kRoundMethods)));
  // As AMD Quark's AmdFP4Spec: e5m3 is both the format and the type.
  const bool is_e5m3 = spec.scale_format == ScaleFormat::e5m3 && spec.scale_type == ScaleType::float_;
  put(members, "scale_type", unless_cast(word_of(is_e5m3 ? ScaleType::float8_e5m3 : spec.scale_type, kScaleTypes)));
  put(members, "scale_format", !cast && has_format ? Value(word_of(spec.scale_format, kScaleFormats)) : Value(nullptr));
  put(members, "scale_calculation_mode",
      spec.scale_format == ScaleFormat::e8m0 ? Value(word_of(spec.scale_calculation_mode, kScaleCalculationModes))
                                             : Value(nullptr));
  put(members, "mx_element_dtype", is_mx_integer ? Value(dtype.name) : Value(nullptr));
  put(members, "observer_cls", observer);
  put(members, "is_scale_quant", spec.is_scale_quant);
  put(members, "enable_buffer_reuse", false);
  put(members, "max_input_numel", kMaxInputNumel);
  if (spec.dtype == Dtype::minifloat) {
    put(members, "exponent_bits", int64_t{spec.exponent_bits});
    put(members, "mantissa_bits", int64_t{spec.mantissa_bits});
  }
  if (dtype.is_integer && !is_mx_integer)
    put(members, "zero_point_type", word_of(spec.zero_point_type, kZeroPointTypes));
  if (spec.scale_sign != ScaleSign::positive) put(members, "scale_sign", word_of(spec.scale_sign, kScaleSigns));
  if (refits_calibrated(spec)) put(members, "scale_refit", kScaleRefits[spec.scale_refit ? 2 : 1]);
  if (!(spec.grid == RoundingGrid())) put(members, "grid", to_json(spec.grid));
  if (!(spec.observer_options == ObserverOptions())) put(members, "observer_options", to_json(spec.observer_options));
  return members;
}

Value to_canonical_json(const QuantizationSpec& spec) {
  Value out = to_json(spec);
  const DtypeInfo& dtype = info_of(spec.dtype);
  if (dtype.is_plain_cast() || dtype.is_block()) return out;  // they have no scales
  if (out.find("grid") == nullptr) out.set("grid", to_json(spec.grid));
  if (out.find("observer_options") == nullptr) out.set("observer_options", to_json(spec.observer_options));
  return out;
}

Value to_json(const Config& config) {
  Object members;
  put(members, "global_quant_config", layer_to_json(config.global));
  put(members, "layer_type_quant_config", layers_to_json(config.layer_type));
  put(members, "layer_quant_config", layers_to_json(config.layer));
  put(members, "exclude", names_to_json(config.exclude));
  if (!config.layer_types.empty()) {
    Object types;
    for (const auto& [name, type] : config.layer_types) types.emplace_back(name, type);
    put(members, "layer_types", std::move(types));
  }
  for (const char* carried : {"algo_config", "pre_quant_opt_config", "kv_cache_quant_config", "kv_cache_group",
                              "min_kv_scale", "kv_cache_post_rope", "shared_scale_groups", "softmax_quant_spec",
                              "quant_mode", "version", "sync_moe_expert_input_amax", "keep_prequantized_layers"})
    if (const Value* value = config.source.find(carried); value != nullptr && !value->is_null())
      put(members, carried, *value);
  put(members, "resolution", word_of(config.resolution, kResolutions));
  put(members, "indivisible_groups", word_of(config.indivisible_groups, kIndivisibleGroups));
  put(members, "non_finite", word_of(config.non_finite, kNonFinite));
  if (config.default_exclusions) put(members, "default_exclusions", true);
  if (config.export_info) {
    put(members, "quant_method", "quark");
    put(members, "export", export_to_json(*config.export_info));
  }
  return members;
}

}  // namespace wasmquant::config
