// Tensors that hold several experts, by name and shape, and the matrices in them.
#include "families/expert_weights.h"

#include <utility>

#include "families/module_path.h"
#include "families/word_list.h"

namespace wasmquant::families {
namespace {

constexpr std::string_view kWeight = ".weight", kExpertsPart = "experts";

// The name of a fused tensor below its parent, and of the matrices in it.
struct FusedName {
  std::string_view name;  // last component of the tensor's module
  bool is_gate_up;
  std::string_view gate, up;
  std::string_view parent;  // if it differs from the tensor's module
};
constexpr FusedName kFusedNames[] = {
    {"gate_up_proj", true, "gate_proj", "up_proj", ""}, {"down_proj", false, "down_proj", "", ""},
    {"gate_proj", false, "gate_proj", "", ""},          {"up_proj", false, "up_proj", "", ""},
    {"input_linear", true, "w1", "w3", "experts"},      {"output_linear", false, "w2", "", "experts"},
    {"fc1", true, "gate_proj", "up_proj", ""},          {"fc2", false, "down_proj", "", ""},
};

// Names of the two tensors where they are not gate_up_proj and down_proj: Granite's, Aria's.
constexpr std::pair<std::string_view, std::string_view> kOtherPairs[] = {{"input_linear", "output_linear"},
                                                                         {"fc1", "fc2"}};

std::string_view module_of(std::string_view name) {
  return name.ends_with(kWeight) ? name.substr(0, name.size() - kWeight.size()) : name;
}

const FusedName* fused_name(std::string_view name) {
  const std::string_view part = last_component(module_of(name));
  for (const FusedName& row : kFusedNames)
    if (row.name == part) return &row;
  return nullptr;
}

}  // namespace

bool is_expert_tensor(std::string_view name, const std::vector<uint64_t>& shape) noexcept {
  const bool can_be = shape.size() == 3 && shape[0] <= kMaxExperts;
  const FusedName* const row = can_be ? fused_name(name) : nullptr;
  if (row == nullptr) return false;
  return !row->parent.empty() || has_component(module_of(name), kExpertsPart);
}

bool are_experts_in_rows(std::string_view name, size_t axes) noexcept {
  if (axes != 2) return false;
  for (const std::string_view ending : {"experts.mlp.w1", "experts.mlp.v1", "experts.mlp.w2"})
    if (ends_with_components(name, ending)) return true;
  return false;
}

std::string_view routed_module(std::string_view layer) noexcept {
  // Granite and DBRX: the matrix of `router` is its `layer`.
  if (ends_with_components(layer, "router.layer")) layer.remove_suffix(std::string_view(".layer").size());
  const std::string_view part = last_component(layer);
  if (part.size() == layer.size()) return {};
  for (const std::string_view name : {"gate", "router", "wg", "gating"})
    if (part == name) return layer.substr(0, layer.size() - part.size() - 1);
  return {};
}

ExpertSiblings expert_siblings(std::string_view name) {
  const std::string_view module = module_of(name), part = last_component(module);
  const std::string parent(module.substr(0, module.size() - part.size()));
  const std::string ending(name.substr(module.size()));
  for (const auto& [gate_up, down] : kOtherPairs)
    if (part == gate_up || part == down)
      return {parent + std::string(gate_up) + ending, parent + std::string(down) + ending};
  return {parent + "gate_up_proj" + ending, parent + "down_proj" + ending};
}

std::optional<ExpertTensor> expert_tensor(std::string_view name, const std::vector<uint64_t>& shape,
                                          const std::vector<uint64_t>& gate_up, const std::vector<uint64_t>& down,
                                          const ModelFamily& family, std::string_view names) {
  const FusedName* const row = fused_name(name);
  if (!is_expert_tensor(name, shape)) return std::nullopt;
  ExpertTensor found;
  found.experts = shape[0];
  if (gate_up.size() == 3 && down.size() == 3) {
    const bool output_major = gate_up[1] == 2 * down[2] && gate_up[2] == down[1];
    const bool input_major = gate_up[2] == 2 * down[1] && gate_up[1] == down[2];
    if (output_major == input_major) return std::nullopt;
    found.is_input_major = input_major;
  } else if (family.is("gpt_oss") || family.is("llama4_text") || family.is("llama4")) {
    found.is_input_major = true;
  }
  found.rows = shape[found.is_input_major ? 2 : 1];
  found.columns = shape[found.is_input_major ? 1 : 2];
  found.is_gate_up = row->is_gate_up && found.rows % 2 == 0 && !family.is("gpt_oss");
  found.gate = row->is_gate_up && !found.is_gate_up ? row->name : row->gate;
  found.up = row->up;
  if (!names.empty()) {
    found.gate = next_word(names);
    if (!names.empty()) found.up = names;
  }
  const std::string_view module = module_of(name);
  found.parent = module.substr(0, module.size() - row->name.size() - 1);
  if (!row->parent.empty()) found.parent += "." + std::string(row->parent);
  return found;
}

List<ExpertMatrix> ExpertTensor::matrices() const {
  List<ExpertMatrix> out;
  const uint64_t halves = is_gate_up ? 2 : 1, height = rows / halves;
  for (uint64_t e = 0; e < experts; ++e)
    for (uint64_t half = 0; half < halves; ++half) {
      ExpertMatrix& matrix = out.emplace_back();
      matrix.layer = parent + "." + std::to_string(e) + "." + std::string(half == 0 ? gate : up);
      matrix.rows = height;
      matrix.columns = columns;
      matrix.first = e * rows * columns + half * height * (is_input_major ? 1 : columns);
      matrix.pitch = is_input_major ? rows : columns;
    }
  return out;
}

}  // namespace wasmquant::families
