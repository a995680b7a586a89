// What mlx-lm reads: config.json by keys of its own, and the tensors of families whose names and values are those of transformers.
// Source: mlx-lm 0.32.2, utils.py, load_model, and models/*.py, ModelArgs.
#include <charconv>

#include "families/expert_weights.h"
#include "families/module_path.h"
#include "families/word_list.h"
#include "runtimes/loaders/loader.h"
#include "runtimes/mlx/mlx_families.h"
#include "runtimes/transformers/conversions.h"

namespace wasmquant::runtimes {
namespace {

std::optional<LoaderLimit> family_limit(const List<LayerPlan>&, const ModelFamily& family) {
  const std::string reason = mlx::write_limit(family);
  if (reason.empty()) return std::nullopt;
  return LoaderLimit{"", reason,
                     "write another format: mlx-lm reads compressed-tensors with 4-bit groups of 32, gptq and awq of "
                     "the families that it knows",
                     false};
}

// "mlp.switch_mlp.up_proj" and 3 of "mlp.experts.3.up_proj".
std::optional<StackPlace> stack_of(const ModelFamily& family, std::string_view layer) {
  const std::optional<mlx::Family> row = families::is_single_expert(layer) ? mlx::row_of(family) : std::nullopt;
  if (!row || row->experts.empty()) return std::nullopt;
  const size_t equals = row->experts.find('=');
  const std::string_view to = row->experts.substr(0, equals), from = row->experts.substr(equals + 1);
  const std::string_view name = families::last_component(layer);
  std::string_view module = layer.substr(0, layer.size() - name.size() - 1);
  const std::string_view number = families::last_component(module);
  module.remove_suffix(number.size() + 1);
  uint64_t index = 0;
  if (std::from_chars(number.data(), number.data() + number.size(), index).ec != std::errc() ||
      index >= families::kMaxExperts || !families::ends_with_components(module, from))
    return std::nullopt;
  module.remove_suffix(from.size());
  const transformers::Conversions conversions(family);
  const bool has_gate = conversions.merged_experts("gate_up_proj") != nullptr;
  for (std::string_view parts = has_gate ? "gate_proj up_proj down_proj" : "fc1 fc2"; !parts.empty();)
    if (const std::string_view part = families::next_word(parts); conversions.expert_matrix(part) == name)
      return StackPlace{text_of("{}{}.{}", module, to, part), index};
  return std::nullopt;
}

// transformers 5 nests what most classes of mlx-lm read at the top, as transformers 4 wrote it, and has one name for the
// number of experts. Classes of Gemma 3 have a base for each kind of layer.
void add_old_names(const json::Value& config, json::Value& members) {
  const json::Value &rope = config["rope_parameters"], &full = rope["full_attention"],
                    &local = rope["sliding_attention"];
  const json::Value& main = full.is_object() ? full : rope;
  const auto add = [&](const char* key, const json::Value& value) {
    if (config[key].is_null() && !value.is_null()) members.set(key, value);
  };
  add("num_experts", config["num_local_experts"]);
  add("rope_theta", main["rope_theta"]);
  add("partial_rotary_factor", main["partial_rotary_factor"]);
  if (full.is_object()) add("rope_local_base_freq", local["rope_theta"]);
  const bool is_scaled = main["rope_type"].is_string() && main["rope_type"].as_string() != "default";
  if (is_scaled || config.find("rope_scaling") == nullptr)
    members.set("rope_scaling", is_scaled ? main : json::Value());  // some classes need the key
  const int64_t heads = config["num_attention_heads"].as_integer(), width = config["hidden_size"].as_integer();
  if (config["head_dim"].is_null() && heads > 0 && width > 0 && width % heads == 0)
    members.set("head_dim", width / heads);
}

json::Value config_members(const json::Value& config, const json::Value& block) {
  json::Value members;
  members.set("quantization", block);
  add_old_names(config, members);
  return members;
}

}  // namespace

extern const Loader kMlx;
const Loader kMlx{.format = "mlx", .stack_of = stack_of, .limit = family_limit, .config_members = config_members};

}  // namespace wasmquant::runtimes
