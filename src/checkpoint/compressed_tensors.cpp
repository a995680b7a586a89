#include "checkpoint/compressed_tensors.h"

#include <algorithm>

#include "core/list.h"

namespace wasmquant {
namespace {

bool is_row_scheme(const QuantizationSpec& spec, size_t dimensions) {
  const int64_t last = static_cast<int64_t>(dimensions) - 1;
  const int64_t axis = spec.ch_axis < 0 ? spec.ch_axis + static_cast<int64_t>(dimensions) : spec.ch_axis;
  if (spec.qscheme == QScheme::per_channel) return axis == 0;
  if (spec.qscheme == QScheme::per_group) return axis == last;
  return spec.qscheme == QScheme::per_tensor;
}

enum class Compressor : uint8_t { pack_quantized, int_quantized, float_quantized };

Compressor compressor_of(const QuantizationSpec& spec) {
  const DtypeInfo& dtype = info_of(spec.dtype);
  if (!dtype.is_integer) return Compressor::float_quantized;
  if (dtype.bits == 8 && spec.qscheme != QScheme::per_group) return Compressor::int_quantized;
  return Compressor::pack_quantized;
}

std::string_view name_of(Compressor compressor) {
  switch (compressor) {
    case Compressor::pack_quantized:
      return "pack-quantized";
    case Compressor::int_quantized:
      return "int-quantized";
    case Compressor::float_quantized:
      return "float-quantized";
  }
  return "";
}

// What the format has no place for; empty when it can hold the weight.
std::string unsupported_part(const WeightDescription& weight, const QuantizationSpec& spec) {
  const DtypeInfo& dtype = info_of(spec.dtype);
  if (weight.layer_type != "Linear" || weight.shape.size() != 2)
    return text_of("a quantized layer of type {}", weight.layer_type.empty() ? "unknown" : weight.layer_type);
  if (!is_row_scheme(spec, weight.shape.size())) return text_of("{} with this scale layout", dtype.name);
  if (spec.zero_point_type == ZeroPointType::float32) return "fractional zero points";
  if (compressor_of(spec) == Compressor::pack_quantized) {
    if (spec.qscheme == QScheme::per_tensor) return text_of("{} per tensor", dtype.name);
    if (dtype.bits != 2 && dtype.bits != 4 && dtype.bits != 8) return text_of("{} words", dtype.name);
  } else {
    if (spec.qscheme == QScheme::per_group) return text_of("{} per group", dtype.name);
    if (dtype.bits != 8 || (!dtype.is_integer && spec.dtype != Dtype::fp8_e4m3)) return std::string(dtype.name);
  }
  return {};
}

// The library's codes are signed; an unsigned dtype is the same grid shifted down by 2^(bits-1).
int16_t shift_to_signed(const DtypeInfo& dtype) {
  return dtype.is_signed ? int16_t{0} : static_cast<int16_t>(-(1 << (dtype.bits - 1)));
}

json::Value weights_block(const QuantizationSpec& spec, uint64_t group_size) {
  const DtypeInfo& dtype = info_of(spec.dtype);
  json::Value block;
  block.set("num_bits", static_cast<int64_t>(dtype.bits));
  block.set("type", dtype.is_integer ? "int" : "float");
  block.set("symmetric", !dtype.is_integer || spec.symmetric);
  block.set("strategy", spec.qscheme == QScheme::per_group     ? "group"
                        : spec.qscheme == QScheme::per_channel ? "channel"
                                                               : "tensor");
  block.set("group_size", spec.qscheme == QScheme::per_group ? json::Value(group_size) : json::Value());
  block.set("block_structure", nullptr);
  block.set("dynamic", false);
  block.set("actorder", nullptr);
  block.set("observer", "minmax");
  block.set("observer_kwargs", json::Object{});
  return block;
}

// The loader casts scales to the model's dtype. A scale rounded there after the codes were chosen would move every
// value, so unless the config asks for a scale type, scales are of the weight's own dtype and the codes are chosen for
// those.
QuantizationSpec with_loaded_scales(QuantizationSpec spec, StorageDtype source) {
  if (spec.scale_type != ScaleType::float_) return spec;
  if (source == StorageDtype::BF16) spec.scale_type = ScaleType::bfloat16;
  if (source == StorageDtype::F16) spec.scale_type = ScaleType::float16;
  return spec;
}

void add_packed(WeightLayout& layout, const WeightDescription& weight) {
  const DtypeInfo& dtype = info_of(layout.spec.dtype);
  const uint64_t rows = layout.rows, columns = layout.columns;
  const uint64_t groups = layout.spec.qscheme == QScheme::per_group ? columns / layout.granularity.block : 1;
  layout.codes = CodeStorage::rows_words;
  layout.code_offset = dtype.is_signed ? static_cast<int16_t>(1 << (dtype.bits - 1)) : int16_t{0};
  add_component(layout, weight, Role::codes, "weight_packed", StorageDtype::I32,
                {rows, packing::words_per_row(columns, dtype.bits)});
  add_component(layout, weight, Role::scale, "weight_scale", scale_storage(layout.spec), {rows, groups});
  add_component(layout, weight, Role::shape, "weight_shape", StorageDtype::I64, {2});
  if (!layout.spec.symmetric) {
    layout.zero_point = ZeroPointStorage::row_words;
    add_component(layout, weight, Role::zero_point, "weight_zero_point", StorageDtype::I32,
                  {packing::words_per_row(rows, dtype.bits), groups});
  }
}

void add_bytes(WeightLayout& layout, const WeightDescription& weight) {
  const DtypeInfo& dtype = info_of(layout.spec.dtype);
  const std::vector<uint64_t> scale_shape =
      layout.spec.qscheme == QScheme::per_channel ? std::vector<uint64_t>{layout.rows, 1} : std::vector<uint64_t>{1};
  layout.codes = CodeStorage::rows_bytes;
  layout.code_offset = dtype.is_integer ? shift_to_signed(dtype) : int16_t{0};
  add_component(layout, weight, Role::codes, "weight", dtype.is_integer ? StorageDtype::I8 : StorageDtype::F8_E4M3,
                weight.shape);
  add_component(layout, weight, Role::scale, "weight_scale", scale_storage(layout.spec), scale_shape);
  if (dtype.is_integer && !layout.spec.symmetric) {
    layout.zero_point = ZeroPointStorage::bytes;
    add_component(layout, weight, Role::zero_point, "weight_zero_point", StorageDtype::I8, scale_shape);
  }
}

}  // namespace

Result<WeightLayout> CompressedTensors::layout(const WeightDescription& weight, const QuantizationSpec& asked) const {
  const QuantizationSpec spec = with_loaded_scales(asked, weight.source);
  TRY(layout, begin_layout(weight, spec));
  const DtypeInfo& dtype = info_of(spec.dtype);
  if (dtype.is_plain_cast()) return cast_layout(std::move(layout), weight);
  if (const std::string part = unsupported_part(weight, spec); !part.empty()) {
    return error_at(
        ErrorCode::format_unsupported, text_of("{}.weight", weight.layer),
        "compressed-tensors cannot hold {}; it holds int2, int4, uint4, int8 and uint8 per channel or per group, int8, "
        "uint8 and fp8_e4m3 per tensor or per channel, with one scale per row or per group of a row. Change the spec, "
        "exclude the layer, or write quark or fake-quantized",
        part);
  }
  if (compressor_of(spec) == Compressor::pack_quantized) {
    add_packed(layout, weight);
  } else {
    add_bytes(layout, weight);
  }
  return std::move(layout);
}

json::Value CompressedTensors::quantization_config(const Config&, const List<LayerOutcome>& layers) const {
  struct Group {
    QuantizationSpec spec;
    json::Array targets;
  };
  List<Group> groups;
  json::Array ignore;
  for (const LayerOutcome& layer : layers) {
    if (!layer.spec || info_of(layer.spec->dtype).is_plain_cast()) {
      if (layer.layer_type == "Linear") ignore.emplace_back(layer.layer);
      continue;
    }
    auto group = std::find_if(groups.begin(), groups.end(), [&](const Group& g) { return g.spec == *layer.spec; });
    if (group == groups.end()) {
      groups.push_back({*layer.spec, {}});
      group = groups.end() - 1;
    }
    group->targets.emplace_back(layer.layer);
  }
  // One scheme: every Linear that is not ignored. Several: each layer by its exact name, which needs no precedence
  // rule.
  if (groups.size() == 1) {
    groups.front().targets.clear();
    groups.front().targets.emplace_back("Linear");
  }
  json::Value config_groups{json::Object{}};
  std::string_view format;
  for (size_t i = 0; i < groups.size(); ++i) {
    Group& g = groups[i];
    const std::string_view compressor = name_of(compressor_of(g.spec));
    format = i == 0 || format == compressor ? compressor : "mixed-precision";
    json::Value block;
    block.set("targets", std::move(g.targets));
    block.set("weights", weights_block(g.spec, static_cast<uint64_t>(std::max<int64_t>(g.spec.group_size, 0))));
    block.set("input_activations", nullptr);
    block.set("output_activations", nullptr);
    block.set("format", compressor);
    config_groups.set(text_of("group_{}", i), std::move(block));
  }
  if (groups.empty()) return nullptr;
  json::Value block;
  block.set("quant_method", "compressed-tensors");
  block.set("format", format);
  block.set("quantization_status", "compressed");
  block.set("config_groups", std::move(config_groups));
  block.set("ignore", std::move(ignore));
  block.set("kv_cache_scheme", nullptr);
  block.set("global_compression_ratio", nullptr);
  block.set("sparsity_config", json::Object{});
  block.set("transform_config", json::Object{});
  block.set("version", "0.17.1");
  return block;
}

}  // namespace wasmquant
