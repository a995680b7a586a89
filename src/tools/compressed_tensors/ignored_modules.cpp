#include "tools/compressed_tensors/ignored_modules.h"

#include <algorithm>

#include "families/module_path.h"
#include "runtimes/transformers/conversions.h"
#include "runtimes/transformers/default_exclusions.h"
#include "runtimes/transformers/loader_names.h"
#include "tools/compressed_tensors/converted_weights.h"

namespace wasmquant {
namespace {

// The module in a tower's pattern: "visual" of "model.visual.blocks.0.attn.qkv"; "" for other layers. Detection heads
// have a pattern, too: the loader creates one head per decoder layer, while the file has one for all.
std::string_view tower_of(std::string_view layer) {
  for (const std::string_view head : {"class_embed", "bbox_embed"})
    if (families::has_component(layer, head) && families::last_component(layer) != head) return head;
  const size_t end = transformers::tower_end(layer);
  return end == std::string_view::npos || end == layer.size() ? std::string_view()
                                                              : families::last_component(layer.substr(0, end));
}

// Groups of layers covered by one pattern.
class Patterns {
 public:
  explicit Patterns(const List<LayerPlan>& layers) {
    for (const LayerPlan& layer : layers) {
      const std::string_view group = group_of(layer.layer);
      if (group.empty() || keeps_weight(layer)) continue;
      if (!contains(quantized_, group)) quantized_.push_back(group);
    }
  }

  /// The pattern for an unquantized layer; empty if its group is partly quantized or has none.
  std::string pattern_of(std::string_view layer) const {
    const std::string_view group = group_of(layer);
    if (group.empty() || contains(quantized_, group)) return {};
    return text_of("re:(.*\\.)?{}\\..*", group);
  }

 private:
  static std::string_view group_of(std::string_view layer) {
    return families::has_component(layer, "experts") ? std::string_view("experts") : tower_of(layer);
  }
  static bool contains(const List<std::string_view>& list, std::string_view item) {
    return std::find(list.begin(), list.end(), item) != list.end();
  }

  List<std::string_view> quantized_;  // groups with a quantized layer
};

void add_once(json::Array& out, std::string_view name) {
  for (const json::Value& known : out)
    if (known.as_string() == name) return;
  out.emplace_back(name);
}

}  // namespace

json::Array ignored_modules(const List<LayerPlan>& layers, const families::ModelFamily& family) {
  const Patterns patterns(layers);
  const transformers::Conversions conversions(family);
  json::Array patterned, named;
  for (const LayerPlan& layer : layers) {
    const bool is_experts = layer.layer_type == "Experts";
    if (!keeps_weight(layer) || (layer.layer_type != "Linear" && !is_experts)) continue;
    if (const transformers::Conversion* const row = conversions.find(layer.layer);
        row != nullptr && row->kind != transformers::Conversion::Kind::experts) {
      for (const std::string& pattern : target_patterns(*row)) add_once(patterned, pattern);
      // Another part of the model may have a layer of that name that is renamed and not converted.
      if (!layer.loader_layer.empty()) named.emplace_back(layer.loader_layer);
    } else if (const std::string pattern = patterns.pattern_of(layer.layer); !pattern.empty()) {
      add_once(patterned, pattern);
      if (layer.loader_layer.empty()) continue;
      const std::string loaded = patterns.pattern_of(layer.loader_layer);
      if (loaded.empty())
        named.emplace_back(layer.loader_layer);
      else
        add_once(patterned, loaded);
    } else {
      named.emplace_back(layer.layer);
      if (!layer.loader_layer.empty()) named.emplace_back(layer.loader_layer);
    }
  }
  for (const transformers::Conversion* row : conversions.rows())
    if (row->kind == transformers::Conversion::Kind::parameter)
      for (const std::string& pattern : target_patterns(*row)) add_once(patterned, pattern);
  for (const std::string_view head : heads_without_tensor(layers, family)) named.emplace_back(head);
  for (json::Value& name : named) patterned.push_back(std::move(name));
  return patterned;
}

}  // namespace wasmquant
