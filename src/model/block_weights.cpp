#include "model/block_weights.h"

#include "model/linear_layers.h"

namespace wasmquant::model {
namespace {

List<BlockWeight> encoder_weights(const Architecture& a) {
  List<BlockWeight> out;
  const auto linear = [&out](Slot weight, Slot bias, const char* name, uint32_t rows, uint32_t columns) {
    out.push_back({weight, std::string(name) + ".weight", rows, columns});
    out.push_back({bias, std::string(name) + ".bias", 0, rows});
  };
  linear(Slot::q, Slot::q_bias, "attention.self.query", a.query_columns(), a.hidden);
  linear(Slot::k, Slot::k_bias, "attention.self.key", a.key_columns(), a.hidden);
  linear(Slot::v, Slot::v_bias, "attention.self.value", a.key_columns(), a.hidden);
  linear(Slot::o, Slot::o_bias, "attention.output.dense", a.hidden, a.query_columns());
  out.push_back({Slot::attention_post_norm, "attention.output.LayerNorm.weight", 0, a.hidden});
  out.push_back({Slot::attention_post_norm_bias, "attention.output.LayerNorm.bias", 0, a.hidden});
  linear(Slot::up, Slot::up_bias, "intermediate.dense", a.intermediate, a.hidden);
  linear(Slot::down, Slot::down_bias, "output.dense", a.hidden, a.intermediate);
  out.push_back({Slot::feed_forward_post_norm, "output.LayerNorm.weight", 0, a.hidden});
  out.push_back({Slot::feed_forward_post_norm_bias, "output.LayerNorm.bias", 0, a.hidden});
  return out;
}

}  // namespace

List<BlockWeight> block_weights(const Architecture& a) {
  if (a.is_encoder) return encoder_weights(a);
  const uint32_t queries = a.query_columns(), keys = a.key_columns();
  List<BlockWeight> out;
  out.push_back({Slot::input_norm, "input_layernorm.weight", 0, a.hidden});
  const auto linear = [&out](Slot weight, bool has_bias, uint32_t rows, uint32_t columns) {
    const LinearLayer& layer = linear_layers()[static_cast<size_t>(weight)];
    out.push_back({weight, std::string(layer.name) + ".weight", rows, columns});
    if (has_bias) out.push_back({layer.bias, std::string(layer.name) + ".bias", 0, rows});
  };
  linear(Slot::q, a.qkv_bias, queries, a.hidden);
  linear(Slot::k, a.qkv_bias, keys, a.hidden);
  linear(Slot::v, a.qkv_bias, keys, a.hidden);
  if (a.head_norms) {
    out.push_back({Slot::q_norm, "self_attn.q_norm.weight", 0, a.head_dim});
    out.push_back({Slot::k_norm, "self_attn.k_norm.weight", 0, a.head_dim});
  }
  linear(Slot::o, a.output_bias, a.hidden, queries);
  // Llama calls the norm before the feed-forward "post attention"; Gemma 2 and 3 have both.
  if (a.post_norms) {
    out.push_back({Slot::attention_post_norm, "post_attention_layernorm.weight", 0, a.hidden});
    out.push_back({Slot::feed_forward_norm, "pre_feedforward_layernorm.weight", 0, a.hidden});
  } else {
    out.push_back({Slot::feed_forward_norm, "post_attention_layernorm.weight", 0, a.hidden});
  }
  linear(Slot::gate, a.mlp_bias, a.intermediate, a.hidden);
  linear(Slot::up, a.mlp_bias, a.intermediate, a.hidden);
  linear(Slot::down, a.mlp_bias, a.hidden, a.intermediate);
  if (a.post_norms) out.push_back({Slot::feed_forward_post_norm, "post_feedforward_layernorm.weight", 0, a.hidden});
  return out;
}

}  // namespace wasmquant::model
