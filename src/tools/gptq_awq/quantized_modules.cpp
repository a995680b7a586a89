#include "tools/gptq_awq/quantized_modules.h"

#include <algorithm>
#include <string>

#include "families/module_path.h"

namespace wasmquant {
namespace {

std::string_view loaded_name(const LayerPlan& layer) {
  return layer.loader_layer.empty() ? std::string_view(layer.layer) : std::string_view(layer.loader_layer);
}

// "mlp.down_proj" of "model.layers.3.mlp.down_proj"; empty outside blocks.
std::string_view part_in_block(std::string_view name) {
  while (!name.empty()) {
    const std::string_view component = families::next_component(name);
    if (!component.empty() && component.find_first_not_of("0123456789") == std::string_view::npos) return name;
  }
  return {};
}

}  // namespace

bool is_plain_linear(const LayerPlan& layer) {
  return layer.layer_type == "Linear" && !families::is_single_expert(layer.layer);
}

std::string_view name_in_block(const LayerPlan& layer) { return part_in_block(loaded_name(layer)); }

json::Value modules_to_quantize(const List<LayerPlan>& layers) {
  List<std::string_view> kept;
  for (const LayerPlan& layer : layers)
    if (is_plain_linear(layer) && keeps_weight(layer) && !name_in_block(layer).empty())
      kept.push_back(loaded_name(layer));
  if (kept.empty()) return nullptr;
  List<std::string_view> listed;
  for (const LayerPlan& layer : layers) {
    if (!is_plain_linear(layer) || keeps_weight(layer)) continue;
    const std::string_view name = loaded_name(layer), end = part_in_block(name);
    const bool is_shared =
        std::any_of(kept.begin(), kept.end(), [&](std::string_view other) { return other.ends_with(end); });
    const std::string_view module = end.empty() || is_shared ? name : end;
    if (std::find(listed.begin(), listed.end(), module) == listed.end()) listed.push_back(module);
  }
  json::Array modules;
  for (const std::string_view module : listed) modules.emplace_back(std::string(module));
  json::Array blocks;
  blocks.emplace_back(std::move(modules));
  return json::Value(std::move(blocks));
}

}  // namespace wasmquant
