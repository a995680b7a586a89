#include "model/block_weights.h"

namespace wasmquant::model {

List<BlockWeight> block_weights(const Architecture& a) {
  const uint32_t queries = a.query_columns(), keys = a.key_columns();
  List<BlockWeight> out;
  out.push_back({Slot::input_norm, "input_layernorm.weight", 0, a.hidden});
  const auto linear = [&out](Slot slot, const char* weight, Slot bias_slot, const char* bias, bool has_bias,
                             uint32_t rows, uint32_t columns) {
    out.push_back({slot, weight, rows, columns});
    if (has_bias) out.push_back({bias_slot, bias, 0, rows});
  };
  linear(Slot::q, "self_attn.q_proj.weight", Slot::q_bias, "self_attn.q_proj.bias", a.qkv_bias, queries, a.hidden);
  linear(Slot::k, "self_attn.k_proj.weight", Slot::k_bias, "self_attn.k_proj.bias", a.qkv_bias, keys, a.hidden);
  linear(Slot::v, "self_attn.v_proj.weight", Slot::v_bias, "self_attn.v_proj.bias", a.qkv_bias, keys, a.hidden);
  if (a.head_norms) {
    out.push_back({Slot::q_norm, "self_attn.q_norm.weight", 0, a.head_dim});
    out.push_back({Slot::k_norm, "self_attn.k_norm.weight", 0, a.head_dim});
  }
  linear(Slot::o, "self_attn.o_proj.weight", Slot::o_bias, "self_attn.o_proj.bias", a.output_bias, a.hidden, queries);
  // Llama calls the norm before the feed-forward "post attention"; Gemma 2 and 3 have one of each.
  if (a.post_norms) {
    out.push_back({Slot::attention_post_norm, "post_attention_layernorm.weight", 0, a.hidden});
    out.push_back({Slot::feed_forward_norm, "pre_feedforward_layernorm.weight", 0, a.hidden});
  } else {
    out.push_back({Slot::feed_forward_norm, "post_attention_layernorm.weight", 0, a.hidden});
  }
  linear(Slot::gate, "mlp.gate_proj.weight", Slot::gate_bias, "mlp.gate_proj.bias", a.mlp_bias, a.intermediate,
         a.hidden);
  linear(Slot::up, "mlp.up_proj.weight", Slot::up_bias, "mlp.up_proj.bias", a.mlp_bias, a.intermediate, a.hidden);
  linear(Slot::down, "mlp.down_proj.weight", Slot::down_bias, "mlp.down_proj.bias", a.mlp_bias, a.hidden,
         a.intermediate);
  if (a.post_norms) out.push_back({Slot::feed_forward_post_norm, "post_feedforward_layernorm.weight", 0, a.hidden});
  return out;
}

}  // namespace wasmquant::model
