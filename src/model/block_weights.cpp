#include "model/block_weights.h"

#include "model/linear_layers.h"

namespace wasmquant::model {

Fused fused_queries(const Architecture& a) noexcept {
  return a.names.has(ModelPart::qkv)         ? Fused::in_order
         : a.names.has(ModelPart::heads_qkv) ? Fused::by_head
                                             : Fused::none;
}

namespace {

// Queries, keys and values, and norms of their heads.
template <class Linear, class Vector>
void add_attention(const Architecture& a, const Linear& linear, const Vector& norm) {
  const uint32_t queries = a.query_columns(), keys = a.key_columns();
  linear(Slot::q, ModelPart::q, queries, a.hidden);
  linear(Slot::q, ModelPart::qkv, queries + 2 * keys, a.hidden);
  linear(Slot::q, ModelPart::heads_qkv, queries + 2 * keys, a.hidden);
  linear(Slot::k, ModelPart::k, keys, a.hidden);
  linear(Slot::v, ModelPart::v, keys, a.hidden);
  norm(Slot::q_norm, ModelPart::q_norm, a.whole_norms ? queries : a.head_dim);
  norm(Slot::k_norm, ModelPart::k_norm, a.whole_norms ? keys : a.head_dim);
}

// All but those of single experts, the router last.
void add_experts(const Architecture& a, List<BlockWeight>& out) {
  const Routing& routing = a.routing;
  const ModelNames& names = a.names;
  const auto shared = [&](Slot weight, ModelPart part, uint32_t rows, uint32_t columns) {
    if (routing.shared_width > 0 && names.has(part)) out.push_back({weight, names.of(part) + ".weight", rows, columns});
  };
  shared(Slot::shared_gate, ModelPart::shared_gate, routing.shared_width, a.hidden);
  shared(Slot::shared_gate, ModelPart::shared_gate_up, 2 * routing.shared_width, a.hidden);
  shared(Slot::shared_up, ModelPart::shared_up, routing.shared_width, a.hidden);
  shared(Slot::shared_down, ModelPart::shared_down, a.hidden, routing.shared_width);
  shared(Slot::shared_scale, ModelPart::shared_scale, 1, a.hidden);
  if (names.has(ModelPart::correction))
    out.push_back({Slot::correction, names.of(ModelPart::correction), 0, routing.experts});
  const auto biases = [&](Slot weight, ModelPart part, uint32_t columns) {
    if (names.has(part)) out.push_back({weight, names.of(part), routing.experts, columns, true});
  };
  biases(Slot::expert_biases_up, ModelPart::expert_biases_up, 2 * routing.width);
  biases(Slot::expert_biases_down, ModelPart::expert_biases_down, a.hidden);
  if (names.has_bias(ModelPart::router))
    out.push_back({Slot::router_bias, names.of(ModelPart::router) + ".bias", 0, routing.experts});
  out.push_back({Slot::router, names.of(ModelPart::router) + ".weight", routing.experts, a.hidden});
}

}  // namespace

List<BlockWeight> block_weights(const Architecture& a, uint32_t layer) {
  const uint32_t queries = a.query_columns();
  const ModelNames& names = a.names;
  List<BlockWeight> out;
  const auto norm = [&](Slot weight, ModelPart part, uint32_t columns) {
    if (!names.has_weight(part)) return;
    out.push_back({weight, names.of(part) + ".weight", 0, columns});
    if (names.has_bias(part)) out.push_back({norm_bias(weight), names.of(part) + ".bias", 0, columns});
  };
  const auto linear = [&](Slot weight, ModelPart part, uint32_t rows, uint32_t columns) {
    if (!names.has(part)) return;
    out.push_back({weight, names.of(part) + ".weight", rows, columns});
    const auto number = static_cast<size_t>(weight);
    const Slot bias = number < kLinearLayers ? linear_layers()[number].bias : static_cast<Slot>(number + 1);
    if (names.has_bias(part)) out.push_back({bias, names.of(part) + ".bias", 0, rows});
  };
  norm(Slot::input_norm, ModelPart::input_norm, a.hidden);
  if (is_convolution(a, layer)) {
    linear(Slot::q, ModelPart::conv_in, 3 * a.hidden, a.hidden);
    const std::string& name = names.of(ModelPart::conv);
    out.push_back({Slot::convolution, name + ".weight", a.hidden, a.convolution_width, true});
    if (names.has_bias(ModelPart::conv)) out.push_back({Slot::convolution_bias, name + ".bias", 0, a.hidden});
    linear(Slot::o, ModelPart::conv_out, a.hidden, a.hidden);
  } else if (const Latent& latent = a.latent; latent.rank > 0) {
    linear(Slot::q_a, ModelPart::q_a, latent.query_rank, a.hidden);
    norm(Slot::q_norm, ModelPart::q_norm, latent.query_rank);
    linear(Slot::q, ModelPart::q, queries, latent.query_rank > 0 ? latent.query_rank : a.hidden);
    linear(Slot::kv_a, ModelPart::kv_a, latent.rank + latent.rope_dim, a.hidden);
    norm(Slot::k_norm, ModelPart::k_norm, latent.rank);
    linear(Slot::k, ModelPart::k, a.heads * (a.head_dim - latent.rope_dim + latent.value_dim), latent.rank);
  } else {
    add_attention(a, linear, norm);
  }
  if (names.has(ModelPart::sinks)) out.push_back({Slot::sinks, names.of(ModelPart::sinks), 0, a.heads});
  if (!is_convolution(a, layer)) linear(Slot::o, ModelPart::o, a.hidden, a.attended_columns());
  norm(Slot::attention_post_norm, ModelPart::attention_post_norm, a.hidden);
  norm(Slot::feed_forward_norm, ModelPart::feed_forward_norm, a.hidden);
  if (has_experts(a, layer)) {
    norm(Slot::feed_forward_post_norm, ModelPart::feed_forward_post_norm, a.hidden);
    add_experts(a, out);
    return out;
  }
  linear(Slot::gate, ModelPart::gate, a.intermediate, a.hidden);
  linear(Slot::gate, ModelPart::gate_up, 2 * a.intermediate, a.hidden);
  linear(Slot::up, ModelPart::up, a.intermediate, a.hidden);
  linear(Slot::down, ModelPart::down, a.hidden, a.intermediate);
  norm(Slot::feed_forward_post_norm, ModelPart::feed_forward_post_norm, a.hidden);
  return out;
}

List<BlockWeight> expert_weights(const Architecture& a, uint32_t expert) {
  const auto name = [&](ModelPart part) {
    std::string out = a.names.of(part) + ".weight";
    if (const size_t at = out.find('#'); at != out.npos) out.replace(at, 1, std::to_string(expert));
    return out;
  };
  const uint32_t width = a.routing.width;
  return {{Slot::expert_gate, name(ModelPart::expert_gate), width, a.hidden},
          {Slot::expert_up, name(ModelPart::expert_up), width, a.hidden},
          {Slot::expert_down, name(ModelPart::expert_down), a.hidden, width}};
}

}  // namespace wasmquant::model
