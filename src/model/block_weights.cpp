// Shapes of the weights of a block by its architecture, and which of them are parts of one tensor.
#include "model/block_weights.h"

#include <algorithm>

#include "core/message.h"
#include "model/linear_layers.h"

namespace wasmquant::model {

Fused fused_queries(const Architecture& a) noexcept {
  return a.names.has(ModelPart::qkv)         ? Fused::in_order
         : a.names.has(ModelPart::heads_qkv) ? Fused::by_head
                                             : Fused::none;
}

uint32_t mixed_columns(const Architecture& a, uint32_t layer) noexcept {
  const Mixer mixer = mixer_of(a, layer);
  return mixer == Mixer::attention || mixer == Mixer::both ? a.attended_columns()
         : mixer == Mixer::convolution                     ? a.hidden
                                                           : a.recurrence.value_columns();
}

namespace {

// Its linear layers in the place of attention's.
void name_mixer(const Architecture& a, uint32_t layer, Architecture& out) {
  const Mixer mixer = mixer_of(a, layer);
  out.mixers = {};
  out.mixers.push_back(static_cast<uint8_t>(mixer));
  if (mixer == Mixer::attention || mixer == Mixer::both) return out.names.set(ModelPart::mixer_strength, {});
  for (const ModelPart part :
       {ModelPart::qkv, ModelPart::heads_qkv, ModelPart::q_norm, ModelPart::k_norm, ModelPart::sinks})
    out.names.set(part, {});
  out.names.copy(ModelPart::q, ModelPart::mixer_in);
  out.names.copy(mixer == Mixer::selective ? ModelPart::kv_b : ModelPart::k, ModelPart::mixer_step);
  if (mixer == Mixer::selective) out.names.set(ModelPart::k, {});
  out.names.copy(ModelPart::q_b, ModelPart::mixer_states);
  out.names.copy(ModelPart::v, ModelPart::mixer_gate);
  out.names.copy(ModelPart::o, ModelPart::mixer_out);
}

// Of a block that only mixes, or only feeds forward.
void remove_other_half(bool mixes, ModelNames& names) {
  using enum ModelPart;
  if (mixes)
    for (const ModelPart part : {gate, up, down, gate_up, feed_forward_norm, feed_forward_post_norm, router})
      names.set(part, {});
  else
    for (const ModelPart part : {q, k, v, o, qkv, heads_qkv, q_norm, k_norm, input_norm, attention_post_norm})
      names.set(part, {});
}

// Of the decoder behind an encoder. The second block of a layer sees all of the encoder's tokens.
void become_decoder(const Architecture& a, uint32_t block, Architecture& out) {
  out.is_encoder = sees_encoded(a, block);
  if (out.is_encoder) {
    out.names = a.decoder.names;
    return;
  }
  remove_other_half(true, out.names);
  out.names.set(ModelPart::layers, a.decoder.names.of(ModelPart::layers));
}

}  // namespace

std::string module_of_block(const Architecture& a, uint32_t block) {
  if (!is_decoding(a, block)) return text_of("{}{}", a.names.of(ModelPart::layers), block);
  return text_of("{}{}", a.decoder.names.of(ModelPart::layers), (block - a.decoder.first) / 2);
}

bool shares_keys(const Architecture& a, uint32_t layer) noexcept {
  for (uint32_t later = layer + 1; later < a.sizes.keys_of.size(); ++later)
    if (a.sizes.keys_of[later] == layer) return true;
  return false;
}

Architecture like_layer(const Architecture& a, uint32_t layer) {
  Architecture out = a;
  const LayerSizes& sizes = a.sizes;
  out.sizes = {};
  out.sizes.keys_of = sizes.keys_of;
  if (is_decoding(a, layer)) become_decoder(a, layer, out);
  if (layer < sizes.head_dims.size()) {
    out.head_dim = sizes.head_dims[layer];
    out.kv_heads = sizes.kv_heads[layer];
    if (!sizes.has_values[layer]) out.names.set(ModelPart::v, {});
  }
  if (layer < sizes.widths.size()) out.intermediate = sizes.widths[layer];
  if (keys_of(a, layer) != layer)
    for (const ModelPart part : {ModelPart::k, ModelPart::v, ModelPart::k_norm, ModelPart::v_norm})
      out.names.set(part, {});
  return out;
}

Architecture widest_layer(const Architecture& a) {
  Architecture out = a;
  out.sizes = {};
  for (const uint32_t dim : a.sizes.head_dims) out.head_dim = std::max(out.head_dim, dim);
  for (const uint32_t heads : a.sizes.kv_heads) out.kv_heads = std::max(out.kv_heads, heads);
  for (const uint32_t width : a.sizes.widths) out.intermediate = std::max(out.intermediate, width);
  return out;
}

Architecture block_of(const Architecture& a, uint32_t layer) {
  Architecture out = like_layer(a, layer);
  out.sizes = {};
  out.decoder = {};
  if (layer != first_of_stack(a, layer) && !a.relative.has_own_tables) out.names.set(ModelPart::relative_bias, {});
  if (!a.mixers.empty()) name_mixer(a, layer, out);
  if (!norms_input(a, layer)) out.names.set(ModelPart::input_norm, {});
  if (a.is_split) remove_other_half(mixer_of(a, layer) != Mixer::none, out.names);
  if (a.routing.experts == 0) return out;
  const bool is_mixture = has_experts(a, layer), has_shared = a.routing.shared_width > 0;
  out.has_experts = {};
  out.has_experts.push_back(is_mixture);
  const auto replace = [&](ModelPart part, ModelPart by) {
    out.names.set(part, has_shared ? a.names.of(by) : std::string());
  };
  if (is_mixture) {
    replace(ModelPart::gate, ModelPart::shared_gate);
    replace(ModelPart::up, ModelPart::shared_up);
    replace(ModelPart::down, ModelPart::shared_down);
    replace(ModelPart::gate_up, ModelPart::shared_gate_up);
    replace(ModelPart::shared_scale, ModelPart::shared_scale);
    out.intermediate = a.routing.shared_width;
  } else {
    for (const ModelPart part :
         {ModelPart::router, ModelPart::correction, ModelPart::shared_scale, ModelPart::expert_biases_up,
          ModelPart::expert_biases_down, ModelPart::router_scale, ModelPart::expert_scales, ModelPart::dense_post_norm,
          ModelPart::experts_norm, ModelPart::experts_post_norm})
      out.names.set(part, {});
  }
  return out;
}

namespace {

// "mlp.experts.3.down_proj" of "mlp.experts.down_proj", which has those of all.
std::string numbered(std::string tensor, uint32_t expert) {
  tensor.insert(tensor.rfind('.') + 1, std::to_string(expert) + '.');
  return tensor;
}

}  // namespace

Architecture expert_of(const Architecture& a, uint32_t expert) {
  Architecture out = a;
  out.names = {};
  out.mixers = {};
  out.is_split = false;
  out.has_experts = {};
  out.has_experts.push_back(false);
  out.intermediate = a.routing.width;
  const auto name = [&](ModelPart part, ModelPart by) {
    std::string module = a.names.of(by);
    if (const size_t at = module.find('#'); at != module.npos) module.replace(at, 1, std::to_string(expert));
    out.names.set(part, std::move(module));
  };
  name(ModelPart::gate, ModelPart::expert_gate);
  name(ModelPart::up, ModelPart::expert_up);
  name(ModelPart::down, ModelPart::expert_down);
  if (a.routing.gate_limit > 0) {
    out.names.set(ModelPart::gate_up, numbered(a.names.of(ModelPart::experts_gate_up), expert));
    out.names.set(ModelPart::down, numbered(a.names.of(ModelPart::experts_down), expert));
  }
  return out;
}

namespace {

// Queries, keys and values, and norms of their heads.
template <class Linear, class Vector>
void add_attention(const Architecture& a, const Linear& linear, const Vector& norm) {
  const uint32_t queries = a.query_columns(), keys = a.key_columns();
  linear(Slot::q, ModelPart::q, a.gated_attention ? 2 * queries : queries, a.hidden);
  linear(Slot::q, ModelPart::qkv, queries + 2 * keys, a.hidden);
  linear(Slot::q, ModelPart::heads_qkv, queries + 2 * keys, a.hidden);
  linear(Slot::k, ModelPart::k, keys, a.hidden);
  linear(Slot::v, ModelPart::v, keys, a.hidden);
  linear(Slot::encoded_k, ModelPart::encoded_k, keys, a.hidden);
  linear(Slot::encoded_v, ModelPart::encoded_v, keys, a.hidden);
  norm(Slot::q_norm, ModelPart::q_norm, a.norms.over_heads ? queries : a.head_dim);
  norm(Slot::k_norm, ModelPart::k_norm, a.norms.over_heads ? keys : a.head_dim);
}

// Of Mamba 1.
template <class Linear, class Norm>
void add_selective(const Architecture& a, const Linear& linear, const Norm& norm, List<BlockWeight>& out) {
  const Recurrence& r = a.recurrence;
  const ModelNames& names = a.names;
  const uint32_t channels = r.value_columns();
  linear(Slot::q, ModelPart::q, 2 * channels, a.hidden);
  out.push_back({Slot::convolution, names.of(ModelPart::conv) + ".weight", channels, a.convolution_width, true});
  if (names.has_bias(ModelPart::conv))
    out.push_back({Slot::convolution_bias, names.of(ModelPart::conv) + ".bias", 0, channels});
  linear(Slot::q_b, ModelPart::q_b, r.step_rank + 2 * r.key_dim, channels);
  norm(Slot::mixer_norm, ModelPart::mixer_norm, r.step_rank);
  norm(Slot::k_norm, ModelPart::mixer_key_norm, r.key_dim);
  norm(Slot::q_norm, ModelPart::mixer_query_norm, r.key_dim);
  linear(Slot::kv_b, ModelPart::kv_b, channels, r.step_rank);
  out.push_back({Slot::decay, names.of(ModelPart::decay), channels, r.key_dim, true});
  out.push_back({Slot::skip, names.of(ModelPart::skip), 0, channels});
}

// Of what is no attention, or has it with it.
template <class Linear>
void add_mixer(const Architecture& a, const Linear& linear, List<BlockWeight>& out) {
  const Recurrence& r = a.recurrence;
  const ModelNames& names = a.names;
  const Mixer mixer = mixer_of(a, 0);
  const uint32_t keys = r.key_columns(), values = r.value_columns();
  uint32_t convolved = 2 * keys + values, rows = convolved;
  if (mixer == Mixer::convolution) {
    convolved = a.hidden;
    rows = 3 * a.hidden;
  } else if (mixer == Mixer::state_space || mixer == Mixer::both) {
    rows += values + r.heads;
  } else if (!names.has(ModelPart::mixer_gate)) {
    rows += values;
  }
  if (mixer == Mixer::both) {
    linear(Slot::state_in, ModelPart::state_in, rows, a.hidden);
    linear(Slot::state_out, ModelPart::state_out, a.hidden, values);
  } else {
    linear(Slot::q, ModelPart::q, rows, a.hidden);
    linear(Slot::k, ModelPart::k, (names.has(ModelPart::mixer_strength) ? 1 : 2) * r.heads, a.hidden);
    linear(Slot::v, ModelPart::v, values, a.hidden);
    linear(Slot::strength, ModelPart::mixer_strength, r.heads, a.hidden);
  }
  const std::string& name = names.of(ModelPart::conv);
  out.push_back({Slot::convolution, name + ".weight", convolved, a.convolution_width, true});
  if (names.has_bias(ModelPart::conv)) out.push_back({Slot::convolution_bias, name + ".bias", 0, convolved});
  const auto vector = [&](Slot slot, ModelPart part, uint32_t columns) {
    if (names.has(part)) out.push_back({slot, names.of(part), 0, columns});
  };
  if (mixer == Mixer::convolution) return;
  vector(Slot::step_bias, ModelPart::step_bias, r.heads);
  vector(Slot::decay, ModelPart::decay, r.heads);
  vector(Slot::skip, ModelPart::skip, r.heads);
  vector(Slot::mixer_norm, ModelPart::mixer_norm, mixer == Mixer::delta ? r.value_dim : values);
}

// Of latent attention.
template <class Linear, class Norm>
void add_latent(const Architecture& a, const Linear& linear, const Norm& norm) {
  const Latent& latent = a.latent;
  linear(Slot::q, ModelPart::q, latent.query_rank > 0 ? latent.query_rank : a.query_columns(), a.hidden);
  norm(Slot::q_norm, ModelPart::q_norm, latent.query_rank);
  linear(Slot::q_b, ModelPart::q_b, a.query_columns(), latent.query_rank);
  linear(Slot::k, ModelPart::k, latent.rank + latent.rope_dim, a.hidden);
  norm(Slot::k_norm, ModelPart::k_norm, latent.rank);
  linear(Slot::kv_b, ModelPart::kv_b, a.heads * (a.head_dim - latent.rope_dim + latent.value_dim), latent.rank);
}

// Of what mixes the tokens of layer 0, but `o`.
template <class Linear, class Norm>
void add_mixing(const Architecture& a, const Linear& linear, const Norm& norm, List<BlockWeight>& out) {
  const Mixer mixer = mixer_of(a, 0);
  const bool attends = mixer == Mixer::attention || mixer == Mixer::both;
  if (mixer == Mixer::none) return;
  if (mixer == Mixer::selective) return add_selective(a, linear, norm, out);
  if (attends && a.latent.rank > 0) add_latent(a, linear, norm);
  if (attends && a.latent.rank == 0) add_attention(a, linear, norm);
  if (mixer != Mixer::attention) add_mixer(a, linear, out);
}

// All but those of single experts, the router last.
void add_experts(const Architecture& a, List<BlockWeight>& out) {
  const Routing& routing = a.routing;
  const ModelNames& names = a.names;
  if (names.has(ModelPart::shared_scale))
    out.push_back({Slot::shared_scale, names.of(ModelPart::shared_scale) + ".weight", 1, a.hidden});
  if (names.has(ModelPart::correction))
    out.push_back({Slot::correction, names.of(ModelPart::correction), 0, routing.experts});
  const auto biases = [&](Slot weight, ModelPart part, uint32_t columns) {
    if (names.has(part)) out.push_back({weight, names.of(part), routing.experts, columns, true});
  };
  const auto vector = [&](Slot slot, ModelPart part, const char* ending, uint32_t columns) {
    if (names.has(part)) out.push_back({slot, names.of(part) + ending, 0, columns});
  };
  vector(Slot::dense_post_norm, ModelPart::dense_post_norm, ".weight", a.hidden);
  vector(Slot::experts_norm, ModelPart::experts_norm, ".weight", a.hidden);
  vector(Slot::experts_post_norm, ModelPart::experts_post_norm, ".weight", a.hidden);
  vector(Slot::router_scale, ModelPart::router_scale, "", a.hidden);
  vector(Slot::expert_scales, ModelPart::expert_scales, "", routing.experts);
  biases(Slot::expert_biases_up, ModelPart::expert_biases_up, 2 * routing.width);
  biases(Slot::expert_biases_down, ModelPart::expert_biases_down, a.hidden);
  if (names.has_bias(ModelPart::router))
    out.push_back({Slot::router_bias, names.of(ModelPart::router) + ".bias", 0, routing.experts});
  out.push_back({Slot::router, names.of(ModelPart::router) + ".weight", routing.experts, a.hidden});
}

}  // namespace

List<BlockWeight> block_weights(const Architecture& all, uint32_t layer) {
  const Architecture a = block_of(all, layer);
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
  if (names.has(ModelPart::relative_bias))
    out.push_back({Slot::relative_bias, names.of(ModelPart::relative_bias), a.relative.buckets, a.heads, true});
  add_mixing(a, linear, norm, out);
  if (names.has(ModelPart::sinks)) out.push_back({Slot::sinks, names.of(ModelPart::sinks), 0, a.heads});
  linear(Slot::o, ModelPart::o, a.hidden, mixed_columns(a, 0));
  norm(Slot::attention_post_norm, ModelPart::attention_post_norm, a.hidden);
  norm(Slot::feed_forward_norm, ModelPart::feed_forward_norm, a.hidden);
  linear(Slot::gate, ModelPart::gate, a.intermediate, a.hidden);
  linear(Slot::gate, ModelPart::gate_up, 2 * a.intermediate, a.hidden);
  linear(Slot::up, ModelPart::up, a.intermediate, a.hidden);
  constexpr struct {
    Slot slot;
    const char* name;
  } kNumbers[] = {{Slot::activation_positive, "alpha_p"},
                  {Slot::activation_negative, "alpha_n"},
                  {Slot::activation_slope, "beta"},
                  {Slot::activation_least, "eps"}};
  for (const auto& [slot, name] : kNumbers)
    if (names.has(ModelPart::activation)) out.push_back({slot, names.of(ModelPart::activation) + name, 0, 1});
  linear(Slot::down, ModelPart::down, a.hidden, a.intermediate);
  norm(Slot::feed_forward_post_norm, ModelPart::feed_forward_post_norm, a.hidden);
  linear(Slot::layer_gate, ModelPart::layer_gate, a.layer_inputs.width, a.hidden);
  linear(Slot::layer_out, ModelPart::layer_out, a.hidden, a.layer_inputs.width);
  norm(Slot::layer_norm, ModelPart::layer_norm, a.hidden);
  linear(Slot::low_rank_in, ModelPart::low_rank_in, a.streams.low_rank, a.hidden);
  linear(Slot::low_rank_out, ModelPart::low_rank_out, a.hidden, a.streams.low_rank);
  norm(Slot::low_rank_norm, ModelPart::low_rank_norm, a.hidden);
  const uint32_t streams = a.streams.count;
  linear(Slot::stream_router, ModelPart::stream_router, streams, a.hidden);
  norm(Slot::stream_router_norm, ModelPart::stream_router_norm, a.hidden);
  linear(Slot::predictions, ModelPart::predictions, streams * streams, streams);
  linear(Slot::corrections, ModelPart::corrections, streams, streams);
  if (names.has(ModelPart::stream_scale))
    out.push_back({Slot::stream_scale, names.of(ModelPart::stream_scale), 0, a.hidden});
  if (names.has(ModelPart::layer_scale)) out.push_back({Slot::layer_scale, names.of(ModelPart::layer_scale), 0, 1});
  if (names.has(ModelPart::router)) add_experts(a, out);
  return out;
}

}  // namespace wasmquant::model
