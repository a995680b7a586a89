#include "runtimes/vllm/joined_layers.h"

#include "families/module_path.h"
#include "families/word_list.h"

namespace wasmquant::vllm {

using namespace families;

namespace {

constexpr struct {
  std::string_view parts, also;
} kJoinedLayers[] = {
#define WASMQUANT_JOINED_LAYERS(parts, also) {parts, also},
#include "runtimes/vllm/joined_layers.def"
};

// The end of the component `experts`; npos if there is none, or nothing below it.
size_t experts_end(std::string_view layer) {
  std::string_view rest = layer;
  while (!rest.empty())
    if (next_component(rest) == "experts" && !rest.empty()) return layer.size() - rest.size() - 1;
  return std::string_view::npos;
}

std::string joined(std::string_view layer, bool with_also) {
  const std::string_view part = last_component(layer);
  for (const auto& [parts, also] : kJoinedLayers) {
    if (!is_word(parts, part) && !(with_also && is_word(also, part))) continue;
    std::string_view words = parts.empty() ? also : parts;
    return std::string(layer.substr(0, layer.size() - part.size())) + std::string(next_word(words)) + "+";
  }
  return {};
}

}  // namespace

std::string joined_layer(std::string_view layer) {
  if (const size_t end = experts_end(layer); end != std::string_view::npos) return std::string(layer.substr(0, end));
  return joined(layer, false);
}

std::string joined_matrix(std::string_view layer) { return joined(layer, true); }

}  // namespace wasmquant::vllm
