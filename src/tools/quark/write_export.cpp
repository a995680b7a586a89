// The quantization_config block of a finished file. The config is first expressed in Quark's terms (whole replacement,
// no static activations without stored scales, only classes that Quark's reader knows). Then every layer is looked up
// as a reader would, and where the result differs from what was written, an exact entry or exclusion is added.
#include <string>
#include <utility>

#include "config/dialects/write.h"
#include "config/match/name_match.h"
#include "config/resolve/resolve.h"
#include "config/spec/vocabulary.h"
#include "core/list.h"

namespace wasmquant::config {
namespace {

// Keeps weights, activations that need no stored scales, and others whose scales were found; the rest was not applied.
void keep_applied(LayerConfig& layer, bool keeps_static) {
  layer.bias.clear();
  if (keeps_static) return;
  for (auto* stages : {&layer.input_tensors, &layer.output_tensors}) {
    for (const QuantizationSpec& stage : *stages)
      if (!stage.is_dynamic && !info_of(stage.dtype).is_plain_cast()) {
        stages->clear();
        break;
      }
  }
}

// The named observer if Quark can make it from a block, else the first of the qscheme. Its TQTObserver asserts a qat_spec,
// which Quark's JSON does not have.
ObserverId quark_observer_of(const QuantizationSpec& spec) {
  if (info_of(spec.observer).is_exported() && spec.observer != ObserverId::TQTObserver) return spec.observer;
  for (const ObserverInfo& row : kObservers)
    if (row.qscheme == spec.qscheme && row.serves(info_of(spec.dtype))) return row.id;
  return spec.observer;
}

// Drops how scales were found and numbers other than Quark's: readers ignore them, and the words may not be Quark's.
void keep_quark_words(LayerConfig& layer) {
  for (auto* stages : {&layer.weight, &layer.input_tensors, &layer.output_tensors})
    for (QuantizationSpec& spec : *stages) {
      spec.grid = {};
      spec.scale_sign = ScaleSign::positive;
      spec.scale_refit = spec.calibrated_refit = false;
      spec.observer_options = {};
      spec.observer = quark_observer_of(spec);
    }
}

bool same(const LayerConfig& a, const LayerConfig& b) {
  return a.weight == b.weight && a.input_tensors == b.input_tensors && a.output_tensors == b.output_tensors;
}

// Whether the entry quantizes nothing: AMD Quark cannot load entries that only cast.
bool only_casts(const LayerConfig& layer) {
  const auto casts = [](const Stages& stages) {
    return stages.empty() || info_of(stages.front().dtype).is_plain_cast();
  };
  return casts(layer.weight) && casts(layer.input_tensors) && casts(layer.output_tensors);
}

// In Quark's terms. Entries that quantize nothing and regular expressions, which Quark takes for names, are dropped:
// their layers are handled one by one.
Config in_quark_terms(const Config& config, bool keeps_static) {
  Config block;
  block.resolution = Resolution::replace;
  block.global = config.global;
  keep_applied(block.global, keeps_static);
  for (const std::string& name : config.exclude)
    if (!is_regex(name)) block.exclude.push_back(name);
  const auto convert = [&](const LayerConfig& from) {
    LayerConfig layer = from;
    keep_applied(layer, keeps_static);
    if (config.resolution == Resolution::field) {
      if (layer.input_tensors.empty()) layer.input_tensors = block.global.input_tensors;
      if (layer.output_tensors.empty()) layer.output_tensors = block.global.output_tensors;
    }
    return layer;
  };
  for (const auto& [type, layer] : config.layer_type)
    if (!only_casts(layer) && !layer.weight.empty() &&
        (type == "Linear" || type == "Conv2d" || type == "ConvTranspose2d"))
      block.layer_type.emplace_back(type, convert(layer));
  for (const auto& [name, layer] : config.layer)
    if (!only_casts(layer) && !layer.weight.empty() && !is_regex(name)) block.layer.emplace_back(name, convert(layer));
  keep_quark_words(block.global);
  for (auto& [name, layer] : block.layer_type) keep_quark_words(layer);
  for (auto& [name, layer] : block.layer) keep_quark_words(layer);
  return block;
}

// Whether an exclusion of `name` would also cover a quantized layer below it.
bool covers_quantized(std::string_view name, std::span<const ExportedLayer> layers) {
  for (const ExportedLayer& layer : layers)
    if (layer.weight != nullptr && layer.name.size() > name.size() && layer.name.starts_with(name) &&
        layer.name[name.size()] == '.')
      return true;
  return false;
}

}  // namespace

json::Value quantization_config(const Config& config, std::span<const ExportedLayer> layers, const ExportInfo& info,
                                bool has_activation_scales) {
  Config block = in_quark_terms(config, has_activation_scales);
  List<std::pair<std::string, LayerConfig>> exact;
  List<std::string> excluded;
  {
    const Resolver asked(config), reader(block);
    for (const ExportedLayer& layer : layers) {
      if (reader.excludes(layer.name)) continue;
      LayerConfig wanted;
      if (layer.weight != nullptr) {
        wanted = asked.layer_config(layer.name, layer.type);
        keep_applied(wanted, has_activation_scales);
        wanted.weight = *layer.weight;
        if (layer.inputs != nullptr) wanted.input_tensors = *layer.inputs;
        keep_quark_words(wanted);
      }
      const bool is_quantized = !only_casts(wanted);
      const LayerConfig read = reader.layer_config(layer.name, layer.type);
      if (is_quantized ? same(read, wanted) : only_casts(read) && layer.type == "Embedding") continue;
      if (!is_quantized && !covers_quantized(layer.name, layers))
        excluded.emplace_back(layer.name);
      else
        exact.emplace_back(layer.name, std::move(wanted));
    }
  }
  // Exact entries come first, because one of Quark's two readers takes the first match of any kind.
  for (auto& entry : block.layer) {
    bool replaced = false;
    for (const auto& [name, layer] : exact) replaced |= name == entry.first;
    if (!replaced) exact.push_back(std::move(entry));
  }
  block.layer = std::move(exact);
  block.exclude.append(excluded.begin(), excluded.end());
  block.export_info = info;

  json::Value value = to_json(block);
  json::Object members;
  for (auto& [key, member] : value.members()) {
    bool is_ours = false;
    for (const char* own : {"resolution", "indivisible_groups", "non_finite", "layer_types", "default_exclusions"})
      is_ours |= key == own;
    if (is_ours) continue;
    members.emplace_back(key, std::move(member));
  }
  for (std::string_view none : {"algo_config", "softmax_quant_spec", "version"})
    members.emplace_back(std::string(none), nullptr);
  members.emplace_back("kv_cache_quant_config", json::Object{});
  members.emplace_back("kv_cache_post_rope", false);
  members.emplace_back("quant_mode", "eager_mode");
  return members;
}

}  // namespace wasmquant::config
