// What mlx-lm reads: config.json by keys of its own, and the tensors of families whose names and values are those of transformers.
// Source: mlx-lm 0.32.2, utils.py, load_model, and models/*.py, ModelArgs.
#include "families/module_path.h"
#include "runtimes/loaders/loader.h"
#include "runtimes/mlx/mlx_families.h"

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

// transformers 5 nests what most classes of mlx-lm read at the top, as transformers 4 wrote it. Those of Gemma 3 have one
// for each kind of layer.
void add_rope(const json::Value& config, json::Value& members) {
  const json::Value &rope = config["rope_parameters"], &full = rope["full_attention"],
                    &local = rope["sliding_attention"];
  const json::Value& main = full.is_object() ? full : rope;
  const auto add = [&](const char* key, const json::Value& value) {
    if (config[key].is_null() && !value.is_null()) members.set(key, value);
  };
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
  add_rope(config, members);
  return members;
}

}  // namespace

extern const Loader kMlx;
const Loader kMlx{.format = "mlx", .limit = family_limit, .config_members = config_members};

}  // namespace wasmquant::runtimes
