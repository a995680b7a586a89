#include "families/module_path.h"

#include <charconv>

#include <algorithm>
#include <iterator>

namespace wasmquant::families {

std::string_view next_component(std::string_view& rest) noexcept {
  const size_t dot = rest.find('.');
  const std::string_view part = rest.substr(0, dot);
  rest = dot == std::string_view::npos ? std::string_view() : rest.substr(dot + 1);
  return part;
}

std::string_view last_component(std::string_view path) noexcept { return path.substr(path.rfind('.') + 1); }

bool has_component(std::string_view path, std::string_view part) noexcept {
  while (!path.empty())
    if (next_component(path) == part) return true;
  return false;
}

bool ends_with_components(std::string_view path, std::string_view ending) noexcept {
  return path.ends_with(ending) && (path.size() == ending.size() || path[path.size() - ending.size() - 1] == '.');
}

int64_t layer_index_of(std::string_view path) noexcept {
  while (!path.empty()) {
    const std::string_view part = next_component(path);
    for (const std::string_view list : {"layers", "layer", "blocks", "block", "h"}) {
      if (part != list) continue;
      std::string_view rest = path;
      const std::string_view number = next_component(rest);
      int64_t index = -1;
      const auto parsed = std::from_chars(number.data(), number.data() + number.size(), index);
      if (parsed.ec == std::errc() && parsed.ptr == number.data() + number.size()) return index;
    }
  }
  return -1;
}

bool is_cache_scale(std::string_view tensor_name) {
  // Source: vLLM's model_loader/weight_utils.py (maybe_remap_kv_scale_name); compressed-tensors' quantization/lifecycle.
  constexpr std::string_view kNames[] = {"k_scale",      "v_scale",      "q_scale",      "kv_scale",
                                         "k_zero_point", "v_zero_point", "q_zero_point", "prob_scale"};
  return std::find(std::begin(kNames), std::end(kNames), last_component(tensor_name)) != std::end(kNames);
}

bool is_single_expert(std::string_view layer) noexcept {
  while (!layer.empty())
    if (next_component(layer) == "experts") {
      const std::string_view number = next_component(layer);
      return !number.empty() && number.find_first_not_of("0123456789") == number.npos && !layer.empty();
    }
  return false;
}

}  // namespace wasmquant::families
