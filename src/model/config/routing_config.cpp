#include "model/config/routing_config.h"

#include <algorithm>

#include "core/message.h"
#include "families/config_reader.h"
#include "families/layer_kinds.h"

namespace wasmquant::model {
namespace {

// mlp_only_layers and decoder_sparse_step (Qwen), first_k_dense_replace (DeepSeek), moe_layer_start_index to moe_layer_end_index (ERNIE), moe_layers (Llama 4).
void read_layers(const json::Value& config, const FamilyFacts& facts, Architecture& out) {
  const uint32_t dense = facts.count("first_experts", "first_k_dense_replace|moe_layer_start_index|num_dense_layers");
  const uint32_t period =
      std::max(facts.count("every", "decoder_sparse_step|moe_layer_interval|moe_layer_freq", 1), 1u);
  const uint32_t last = facts.count("last_experts", "moe_layer_end_index", out.layers);
  const bool counts_from_one =
      !config[key_of(config, "decoder_sparse_step|moe_layer_interval|interleave_moe_layer_step").c_str()].is_null();
  const uint32_t place = facts.count("experts_offset", "", counts_from_one ? period - 1 : 0);
  const List<std::string_view> kinds = families::layer_kinds(families::ConfigReader(config), out.layers);
  for (uint32_t layer = 0; layer < out.layers; ++layer)
    out.has_experts[layer] =
        out.is_split ? kinds[layer] == "moe" : layer >= dense && layer <= last && layer % period == place;
  if (const json::Value& listed = config["moe_layers"]; listed.is_array()) {
    out.has_experts = List<bool>(out.layers);
    for (const json::Value& layer : listed.items())
      if (layer.is_integer() && layer.as_integer() >= 0 && layer.as_integer() < out.layers)
        out.has_experts[static_cast<size_t>(layer.as_integer())] = true;
  }
  for (const json::Value& layer : config["mlp_only_layers"].items())
    if (layer.is_integer() && layer.as_integer() >= 0 && layer.as_integer() < out.layers)
      out.has_experts[static_cast<size_t>(layer.as_integer())] = false;
  const json::Array& types = config["mlp_layer_types"].items();
  for (size_t layer = 0; layer < types.size() && layer < out.layers; ++layer)
    out.has_experts[layer] = types[layer].as_string() == "sparse";
}

}  // namespace

Status read_routing(const json::Value& config, const FamilyFacts& facts, Architecture& out) {
  if (!out.names.has(ModelPart::router)) return {};
  Routing& routing = out.routing;
  routing.experts = facts.count("experts", "num_experts|num_local_experts|n_routed_experts|moe_num_experts");
  routing.chosen = facts.count("chosen", "num_experts_per_tok|moe_k|moe_topk");
  routing.width = facts.count("expert_width", "moe_intermediate_size");
  const uint32_t shared = facts.count("shared", "n_shared_experts|num_shared_experts|moe_num_shared_experts");
  routing.shared_width = out.names.has(ModelPart::shared_down)
                             ? facts.count("shared_width", "shared_expert_intermediate_size", shared * routing.width)
                             : 0;
  routing.groups = std::max(facts.count("groups", "n_group", 1), 1u);
  routing.chosen_groups = std::max(facts.count("chosen_groups", "topk_group", 1), 1u);
  routing.scores = facts.has(families::forward::kSigmoidScores)   ? Routing::Scores::sigmoid
                   : facts.has(families::forward::kChosenSoftmax) ? Routing::Scores::softmax_of_chosen
                                                                  : Routing::Scores::softmax;
  routing.is_normalized = facts.has(families::forward::kNormalizedScores) || facts.flag("normalized");
  routing.scale = static_cast<float>(facts.number("score_scale", "routed_scaling_factor").value_or(1));
  routing.scales_input = facts.flag("scales_input");
  routing.is_input_major = facts.has(families::forward::kClampedGates) || facts.flag("input_major");
  if (facts.has(families::forward::kClampedGates)) {
    routing.gate_limit = static_cast<float>(facts.number("", "swiglu_limit").value_or(7));
    routing.gate_slope = static_cast<float>(facts.number("", "swiglu_alpha").value_or(1.702));
    if (!(routing.gate_limit > 0))
      return error_at(ErrorCode::config_invalid, "/swiglu_limit", "must be a positive number");
  }
  if (facts.has(families::forward::kBestOfGroup)) {
    routing.group_best = 1;
    const std::string method = facts.text("", "topk_method");
    if (method.empty() || method == "greedy")
      routing.groups = routing.chosen_groups = 1;
    else if (method != "group_limited_greedy")
      return error_at(ErrorCode::not_implemented, "/topk_method",
                      "the forward pass does not support {q}; it supports greedy and group_limited_greedy", method);
  }
  const bool fits = routing.experts >= 1 && routing.experts <= kMaxExperts && routing.chosen >= 1 &&
                    routing.chosen <= routing.experts && routing.width >= 1 && routing.experts % routing.groups == 0 &&
                    routing.chosen_groups <= routing.groups &&
                    routing.chosen <= routing.chosen_groups * (routing.experts / routing.groups);
  if (!fits)
    return error_at(ErrorCode::config_invalid, "/num_experts",
                    "{} experts of width {} in {} groups, of which a token sees {} in {} groups, are impossible",
                    routing.experts, routing.width, routing.groups, routing.chosen, routing.chosen_groups);
  out.has_experts = List<bool>(out.layers);
  read_layers(config, facts, out);
  const bool has_dense = has_feed_forward(out.names);
  for (const bool has_experts : out.has_experts)
    if (!has_experts && !has_dense)
      return error_at(ErrorCode::not_implemented, "/first_k_dense_replace",
                      "the forward pass of {} does not support layers without experts", out.family);
  return {};
}

}  // namespace wasmquant::model
