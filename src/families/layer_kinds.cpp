#include "families/layer_kinds.h"

namespace wasmquant::families {
namespace {

constexpr std::string_view kAttention = "attention", kOther = "mamba";

// NVIDIA's letters.
std::string_view kind_of_letter(char letter) noexcept {
  switch (letter) {
    case '*':
      return kAttention;
    case 'E':
      return "moe";
    case '-':
      return "mlp";
    default:
      return kOther;
  }
}

}  // namespace

List<std::string_view> layer_kinds(const ConfigReader& config, uint32_t layers) {
  List<std::string_view> kinds;
  const json::Value* const list = config.find("layer_types|layers_block_type");
  if (list != nullptr && list->is_array()) {
    for (const json::Value& kind : list->items()) kinds.push_back(kind.as_string());
    return kinds;
  }
  for (const char letter : config.text("hybrid_override_pattern")) kinds.push_back(kind_of_letter(letter));
  if (!kinds.empty()) return kinds;
  const json::Value* const indices = config.find("attn_layer_indices");
  const json::Value* const offset = config.find("attn_layer_offset");
  const auto period = config.count("attn_layer_period");
  if (indices == nullptr && !period) return kinds;
  const int64_t first = offset == nullptr ? 0 : offset->as_integer();
  for (int64_t layer = 0; layer < layers; ++layer) {
    bool attends = indices == nullptr && layer >= first && (layer - first) % *period == 0;
    for (size_t i = 0; indices != nullptr && i < indices->items().size(); ++i)
      attends = attends || indices->items()[i].as_integer() == layer;
    kinds.push_back(attends ? kAttention : kOther);
  }
  return kinds;
}

}  // namespace wasmquant::families
