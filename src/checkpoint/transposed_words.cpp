#include "checkpoint/transposed_words.h"

namespace wasmquant {
namespace {

constexpr uint64_t kPerWord = 8;

// Both formats: the layout up to the codes, and what does not fit.
Result<WeightLayout> begin(const WeightDescription& weight, const Stages& stages, Dtype dtype, const char* format,
                           const char* holds) {
  QuantizationSpec spec = stages.front();
  if (spec.scale_type == ScaleType::float_) spec.scale_type = ScaleType::float16;  // codes are chosen for these
  TRY(layout, begin_layout(weight, {spec}));
  const bool plain = spec.scale_format == ScaleFormat::float32 && spec.scale_type == ScaleType::float16 &&
                     spec.zero_point_type == ZeroPointType::int32 && stages.size() == 1;
  const int64_t axis = spec.ch_axis < 0 ? spec.ch_axis + static_cast<int64_t>(weight.shape.size()) : spec.ch_axis;
  const bool fits = plain && weight.layer_type == "Linear" && weight.shape.size() == 2 && spec.dtype == dtype &&
                    spec.qscheme == QScheme::per_group && axis == 1;
  const bool whole = fits && layout.rows % kPerWord == 0 && layout.granularity.block % kPerWord == 0 &&
                     layout.columns % layout.granularity.block == 0;
  if (whole) return std::move(layout);
  return error_at(
      ErrorCode::format_unsupported, text_of("{}.weight", weight.layer),
      "{} holds {} per group along the last axis of Linear layers, rows and group sizes being multiples of 8, "
      "with float16 scales; this is {} {}. Change the spec, exclude the layer, or write compressed-tensors",
      format, holds, info_of(spec.dtype).name,
      fits ? text_of("of {} rows in groups of {}", layout.rows, layout.granularity.block)
           : text_of("for a layer of type {}", weight.layer_type));
}

std::vector<uint64_t> scale_shape(const WeightLayout& layout) {
  return {layout.columns / layout.granularity.block, layout.rows};
}
std::vector<uint64_t> zero_shape(const WeightLayout& layout) {
  return {layout.columns / layout.granularity.block, layout.rows / kPerWord};
}

bool is_kept(const LayerOutcome& layer) {
  return layer.layer_type == "Linear" && (layer.weight.empty() || info_of(layer.weight.front().dtype).is_plain_cast());
}

uint64_t group_of(const LayerOutcome& layer) {
  return layer.weight.empty() || is_kept(layer) ? 0 : static_cast<uint64_t>(layer.weight.front().group_size);
}

// "^model\\.layers\\.0$": names are literals in regular expressions.
std::string exact(std::string_view name) {
  std::string out = "^";
  for (const char c : name) {
    if (c == '.') out += '\\';
    out += c;
  }
  return out += '$';
}

}  // namespace

Result<WeightLayout> Awq::layout(const WeightDescription& weight, const Stages& stages) const {
  if (info_of(stages.front().dtype).is_plain_cast()) {
    TRY(cast, begin_layout(weight, stages));
    return cast_layout(std::move(cast), weight);
  }
  TRY(layout, begin(weight, stages, Dtype::uint4, "awq", "uint4 with zero points"));
  layout.codes = CodeStorage::columns_nibble_words;
  layout.order = packing::WordOrder::reorder;
  layout.zero_point = ZeroPointStorage::nibble_words;
  add_component(layout, weight, Role::codes, "qweight", StorageDtype::I32, {layout.columns, layout.rows / kPerWord});
  add_component(layout, weight, Role::scale, "scales", StorageDtype::F16, scale_shape(layout));
  add_component(layout, weight, Role::zero_point, "qzeros", StorageDtype::I32, zero_shape(layout));
  return std::move(layout);
}

Status Awq::check(const List<LayerOutcome>& layers) const {
  const LayerOutcome* first = nullptr;
  for (const LayerOutcome& layer : layers) {
    if (group_of(layer) == 0) continue;
    if (first == nullptr) first = &layer;
    if (group_of(layer) != group_of(*first))
      return error_at(ErrorCode::format_unsupported, layer.layer,
                      "has groups of {}, {} has groups of {}; awq has one group size for all layers. Choose one that "
                      "divides every axis, or exclude the layer",
                      group_of(layer), first->layer, group_of(*first));
  }
  return {};
}

json::Value Awq::quantization_config(const Config&, const List<LayerOutcome>& layers) const {
  json::Array kept;
  uint64_t group = 0;
  for (const LayerOutcome& layer : layers) {
    if (is_kept(layer)) kept.emplace_back(layer.layer);
    if (group_of(layer) != 0) group = group_of(layer);
  }
  if (group == 0) return nullptr;
  json::Value block;
  block.set("quant_method", "awq");
  block.set("bits", 4);
  block.set("group_size", group);
  block.set("zero_point", true);
  block.set("version", "gemm");
  block.set("modules_to_not_convert", std::move(kept));
  return block;
}

Result<WeightLayout> Gptq::layout(const WeightDescription& weight, const Stages& stages) const {
  if (info_of(stages.front().dtype).is_plain_cast()) {
    TRY(cast, begin_layout(weight, stages));
    return cast_layout(std::move(cast), weight);
  }
  TRY(layout, begin(weight, stages, Dtype::int4, "gptq", "symmetric int4"));
  if (!layout.spec.symmetric)
    return error_at(ErrorCode::format_unsupported, text_of("{}.weight", weight.layer),
                    "gptq holds symmetric int4 here: loaders add 1 to stored zero points, and 0 - 1 does not fit. Make "
                    "the spec symmetric, or write awq with uint4");
  layout.codes = CodeStorage::columns_words;
  layout.code_offset = 8;
  layout.zero_offset = -1;
  layout.order = packing::WordOrder::order;
  layout.zero_point = ZeroPointStorage::nibble_words;
  add_component(layout, weight, Role::codes, "qweight", StorageDtype::I32, {layout.columns / kPerWord, layout.rows});
  add_component(layout, weight, Role::scale, "scales", StorageDtype::F16, scale_shape(layout));
  add_component(layout, weight, Role::zero_point, "qzeros", StorageDtype::I32, zero_shape(layout));
  add_component(layout, weight, Role::group_index, "g_idx", StorageDtype::I32, {layout.columns});
  return std::move(layout);
}

json::Value Gptq::quantization_config(const Config&, const List<LayerOutcome>& layers) const {
  uint64_t group = 0;
  bool keeps_head = true;
  for (const LayerOutcome& layer : layers) {
    if (group == 0) group = group_of(layer);
    if (layer.layer == "lm_head") keeps_head = is_kept(layer);
  }
  if (group == 0) return nullptr;
  json::Value dynamic{json::Object{}};
  for (const LayerOutcome& layer : layers) {
    if (layer.layer_type != "Linear" || layer.layer == "lm_head") continue;
    if (is_kept(layer)) {
      dynamic.set(text_of("-:{}", exact(layer.layer)), json::Value(json::Object{}));
    } else if (group_of(layer) != group) {
      json::Value own;
      own.set("group_size", group_of(layer));
      dynamic.set(text_of("+:{}", exact(layer.layer)), std::move(own));
    }
  }
  json::Value block;
  block.set("quant_method", "gptq");
  block.set("bits", 4);
  block.set("group_size", group);
  block.set("desc_act", false);
  block.set("sym", true);
  block.set("lm_head", !keeps_head);
  block.set("checkpoint_format", "gptq");
  block.set("pack_dtype", "int32");
  if (!dynamic.members().empty()) block.set("dynamic", std::move(dynamic));
  return block;
}

}  // namespace wasmquant
