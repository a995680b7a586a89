// The layouts of both formats and their quantization_config, with the modules that stay unquantized.
#include "tools/gptq_awq/transposed_words.h"

#include <algorithm>

#include "config/spec/uniform_blocks.h"
#include "families/module_path.h"
#include "runtimes/transformers/conversions.h"
#include "runtimes/vllm/joined_layers.h"
#include "tools/gptq_awq/quantized_modules.h"

namespace wasmquant {
namespace {

constexpr uint64_t kPerWord = 8;  // of AWQ

// Codes per whole words; GPTQ's kernels need at least 8.
constexpr uint64_t codes_of_words(uint32_t bits) { return bits == 2 ? 16 : bits == 3 ? 32 : 8; }

// Both formats: the layout up to the codes, and checks. Rows and groups must be multiples of `multiple`.
Result<WeightLayout> begin(const WeightDescription& weight, const Stages& stages, bool holds_dtype, uint64_t multiple,
                           const char* format, const char* holds) {
  QuantizationSpec spec = stages.front();
  if (spec.scale_type == ScaleType::float_) spec.scale_type = ScaleType::float16;  // codes are chosen for these
  TRY(layout, begin_layout(weight, {spec}));
  const bool plain = spec.scale_format == ScaleFormat::float32 && spec.scale_type == ScaleType::float16 &&
                     spec.zero_point_type == ZeroPointType::int32 && stages.size() == 1;
  const int64_t axis = spec.ch_axis < 0 ? spec.ch_axis + static_cast<int64_t>(weight.shape.size()) : spec.ch_axis;
  const uint64_t group = layout.granularity.block;
  std::string problem;
  if (weight.layer_type != "Linear" || weight.shape.size() != 2)
    problem = text_of("for a layer of type {}", weight.layer_type.empty() ? "unknown" : weight.layer_type);
  else if (!holds_dtype)
    problem = ", which it does not hold";
  else if (spec.qscheme != QScheme::per_group || axis != 1)
    problem =
        spec.qscheme == QScheme::per_channel ? "with one scale for a row" : "with other groups than along the rows";
  else if (!plain)
    problem = "with scales or zero points that it does not hold";
  else if (layout.rows % multiple != 0)
    problem = text_of("of {} rows", layout.rows);
  else if (group % multiple != 0)
    problem = text_of("in groups of {}", group);
  else if (layout.columns % group != 0)
    problem = text_of("in groups of {} on rows of {}, whose last group is short", group, layout.columns);
  else
    return std::move(layout);
  return error_at(
      ErrorCode::format_unsupported, text_of("{}.weight", weight.layer),
      "{} holds {} per group along the last axis of Linear layers, rows and group sizes being multiples of {}, "
      "with float16 scales; this is {}{}{}. Change the spec, exclude the layer, or write compressed-tensors",
      format, holds, multiple, info_of(spec.dtype).name, problem.starts_with(",") ? "" : " ", problem);
}

std::vector<uint64_t> scale_shape(const WeightLayout& layout) { return {layout.granularity.blocks(), layout.rows}; }

bool is_kept(const LayerPlan& layer) {
  return layer.layer_type == "Linear" &&
         (layer.weight->empty() || info_of(layer.weight->front().dtype).is_plain_cast());
}

uint64_t group_of(const LayerPlan& layer) {
  return layer.weight->empty() || is_kept(layer) ? 0 : static_cast<uint64_t>(layer.weight->front().group_size);
}

bool is_version_2(const LayerPlan& layer) { return !info_of(layer.weight->front().dtype).is_signed; }
uint64_t bits_of(const LayerPlan& layer) { return info_of(layer.weight->front().dtype).bits; }

// "^model\\.layers\\.0$": names as literals in regular expressions.
// A pattern for the module and everything below it.
std::string exact(std::string_view name, bool with_below = false) {
  std::string out = "^";
  for (const char c : name) {
    if (c == '.') out += '\\';
    out += c;
  }
  return out += with_below ? "(\\..*)?$" : "$";
}

// The modules of experts none of which is quantized. vLLM builds one layer of them and looks for its name only.
class KeptExperts {
 public:
  explicit KeptExperts(const List<LayerPlan>& layers) {
    for (const LayerPlan& layer : layers)
      for (const std::string& name : {layer.layer, layer.loader_layer})
        if (!is_kept(layer) && families::is_single_expert(name)) add_once(quantized_, vllm::joined_layer(name));
  }

  /// The module that stands for the layer; empty if the layer is named itself.
  std::string module_of(std::string_view layer) const {
    if (!families::is_single_expert(layer)) return {};
    const std::string module = vllm::joined_layer(layer);
    return contains(quantized_, module) ? std::string() : module;
  }
  /// Whether the module is met for the first time.
  bool is_new(const std::string& module) { return add_once(named_, module); }

 private:
  static bool contains(const List<std::string>& list, std::string_view item) {
    return std::find(list.begin(), list.end(), item) != list.end();
  }
  static bool add_once(List<std::string>& list, const std::string& item) {
    if (contains(list, item)) return false;
    list.push_back(item);
    return true;
  }

  List<std::string> quantized_, named_;
};

}  // namespace

Result<WeightLayout> Awq::layout(const WeightDescription& weight, const Stages& stages) const {
  if (info_of(stages.front().dtype).is_plain_cast()) {
    TRY(cast, begin_layout(weight, stages));
    return cast_layout(std::move(cast), weight);
  }
  TRY(layout, begin(weight, stages, stages.front().dtype == Dtype::uint4, kPerWord, "awq", "uint4 with zero points"));
  layout.codes = CodeStorage::columns_nibble_words;
  layout.order = packing::WordOrder::reorder;
  layout.zero_point = ZeroPointStorage::nibble_words;
  add_component(layout, weight, Role::codes, "qweight", StorageDtype::I32, {layout.columns, layout.rows / kPerWord});
  add_component(layout, weight, Role::scale, "scales", StorageDtype::F16, scale_shape(layout));
  add_component(layout, weight, Role::zero_point, "qzeros", StorageDtype::I32,
                {layout.granularity.blocks(), layout.rows / kPerWord});
  return std::move(layout);
}

Status Awq::check(const List<LayerPlan>& layers) const {
  const LayerPlan* first = nullptr;
  for (const LayerPlan& layer : layers) {
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

json::Value Awq::quantization_config(const Config&, const List<LayerPlan>& layers, const families::ModelFamily&) const {
  json::Array kept;
  const LayerPlan* first = nullptr;
  bool has_head = false;
  KeptExperts experts(layers);
  for (const LayerPlan& layer : layers) {
    has_head |= group_of(layer) != 0 && families::last_component(layer.layer) == "lm_head";
    for (const std::string& name : {layer.layer, layer.loader_layer}) {
      if (!is_kept(layer) || name.empty()) continue;
      const std::string module = experts.module_of(name);
      if (module.empty())
        kept.emplace_back(name);
      else if (experts.is_new(module))
        kept.emplace_back(module);
    }
    if (first == nullptr && group_of(layer) != 0) first = &layer;
  }
  if (first == nullptr) return nullptr;
  config::UniformScheme scheme = config::uniform_scheme(first->weight->front());
  scheme.symmetric = false;  // the format always has zero points
  return config::awq_block(scheme, has_head, std::move(kept));
}

Result<WeightLayout> Gptq::layout(const WeightDescription& weight, const Stages& stages) const {
  if (info_of(stages.front().dtype).is_plain_cast()) {
    TRY(cast, begin_layout(weight, stages));
    return cast_layout(std::move(cast), weight);
  }
  const DtypeInfo& dtype = info_of(stages.front().dtype);
  const bool holds = dtype.is_integer && (dtype.bits == 2 || dtype.bits == 3 || dtype.bits == 4 || dtype.bits == 8);
  TRY(layout, begin(weight, stages, holds, codes_of_words(dtype.bits), "gptq",
                    "symmetric int2, int3, int4 and int8, uint2, uint3, uint4 and uint8"));
  if (dtype.is_signed && !layout.spec.symmetric)
    return error_at(
        ErrorCode::format_unsupported, text_of("{}.weight", weight.layer),
        "gptq holds {} symmetric: loaders of version 1 add 1 to stored zero points, and 0 - 1 does not fit. "
        "Make the spec symmetric, or use u{} for version 2",
        dtype.name, dtype.name);
  layout.codes = CodeStorage::columns_words;
  layout.bits = dtype.bits;
  layout.code_offset = static_cast<int16_t>(dtype.is_signed ? 1 << (dtype.bits - 1) : 0);
  layout.zero_offset = dtype.is_signed ? -1 : 0;
  layout.order = packing::WordOrder::order;
  layout.zero_point = dtype.bits == 4   ? ZeroPointStorage::nibble_words
                      : dtype.bits == 8 ? ZeroPointStorage::bytes  // four bytes a word
                                        : ZeroPointStorage::bit_stream;
  const uint64_t groups = layout.granularity.blocks();
  add_component(layout, weight, Role::codes, "qweight", StorageDtype::I32,
                {layout.columns * dtype.bits / 32, layout.rows});
  add_component(layout, weight, Role::scale, "scales", StorageDtype::F16, scale_shape(layout));
  add_component(layout, weight, Role::zero_point, "qzeros", StorageDtype::I32, {groups, layout.rows * dtype.bits / 32});
  add_component(layout, weight, weight.is_reordered ? Role::column_group : Role::group_index, "g_idx",
                StorageDtype::I32, {layout.columns});
  return std::move(layout);
}

Status Gptq::check(const List<LayerPlan>& layers) const {
  const LayerPlan* first = nullptr;
  for (const LayerPlan& layer : layers) {
    if (group_of(layer) == 0) continue;
    if (first == nullptr) first = &layer;
    if (is_version_2(layer) != is_version_2(*first))
      return error_at(ErrorCode::format_unsupported, layer.layer,
                      "is {}, {} is {}: one is of gptq's version 1, the other of version 2. Make all signed, or none",
                      info_of(layer.weight->front().dtype).name, first->layer,
                      info_of(first->weight->front().dtype).name);
  }
  return {};
}

json::Value Gptq::quantization_config(const Config&, const List<LayerPlan>& layers,
                                      const families::ModelFamily&) const {
  const LayerPlan* first = nullptr;
  bool keeps_head = true, is_reordered = false;
  for (const LayerPlan& layer : layers) {
    is_reordered |= layer.is_reordered;
    if (first == nullptr && group_of(layer) != 0) first = &layer;
    if (layer.layer == "lm_head") keeps_head = is_kept(layer);
  }
  if (first == nullptr) return nullptr;
  const uint64_t group = group_of(*first), bits = bits_of(*first);
  json::Value dynamic{json::Object{}};
  KeptExperts experts(layers);
  for (const LayerPlan& layer : layers) {
    if (layer.layer_type != "Linear" || layer.layer == "lm_head") continue;
    if (is_kept(layer)) {
      for (const std::string& name : {layer.layer, layer.loader_layer}) {
        if (name.empty()) continue;
        const std::string module = experts.module_of(name);
        if (module.empty() || experts.is_new(module))
          dynamic.set(text_of("-:{}", exact(module.empty() ? name : module, !module.empty())),
                      json::Value(json::Object{}));
      }
    } else if (group_of(layer) != group || bits_of(layer) != bits) {
      json::Value own;
      if (bits_of(layer) != bits) own.set("bits", bits_of(layer));
      own.set("group_size", group_of(layer));
      if (!layer.loader_layer.empty()) dynamic.set(text_of("+:{}", exact(layer.loader_layer)), json::Value(own));
      dynamic.set(text_of("+:{}", exact(layer.layer)), std::move(own));
    }
  }
  config::UniformScheme scheme = config::uniform_scheme(first->weight->front());
  scheme.symmetric = !is_version_2(*first);
  json::Value block = config::gptq_block(scheme, is_reordered, !keeps_head, std::move(dynamic));
  if (json::Value modules = modules_to_quantize(layers); !modules.is_null())
    block.set("modules_in_block_to_quantize", std::move(modules));
  return block;
}

const CheckpointFormat& awq_format() noexcept {
  static constexpr Awq format;
  return format;
}

const CheckpointFormat& gptq_format() noexcept {
  static constexpr Gptq format;
  return format;
}

}  // namespace wasmquant
