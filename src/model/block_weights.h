// The tensors of one transformer block, as Hugging Face names them, and their values while the block runs.
#pragma once
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "core/list.h"
#include "model/config/architecture.h"
#include "model/config/factor_config.h"
#include "model/linear_input.h"

namespace wasmquant::model {

/// The weights of a block.
enum class Slot : uint8_t {
  q,
  k,
  v,
  state_in,  // of Mixer::both
  strength,  // of gated delta nets, in which q and o are mixer_in and mixer_out, k steps and v gates
  q_b,       // of latent attention, in which q and k make its narrow vectors; of Mamba 1 mixer_states
  kv_b,      // of Mamba 1 mixer_step
  encoded_k,
  encoded_v,
  state_out,
  o,
  gate,
  up,
  down,
  layer_gate,
  layer_out,
  q_bias,
  k_bias,
  v_bias,
  state_in_bias,
  strength_bias,
  q_b_bias,
  kv_b_bias,
  encoded_k_bias,
  encoded_v_bias,
  state_out_bias,
  o_bias,
  gate_bias,
  up_bias,
  down_bias,
  layer_gate_bias,
  layer_out_bias,
  input_norm,
  q_norm,
  k_norm,
  attention_post_norm,
  feed_forward_norm,
  feed_forward_post_norm,
  input_norm_bias,
  q_norm_bias,
  k_norm_bias,
  attention_post_norm_bias,
  feed_forward_norm_bias,
  feed_forward_post_norm_bias,
  relative_bias,
  convolution,  // of a mixer that is no attention
  convolution_bias,
  step_bias,
  decay,
  skip,
  mixer_norm,
  router,
  router_bias,
  correction,
  sinks,
  expert_biases_up,
  expert_biases_down,
  shared_scale,
  activation_positive,  // numbers of an activation (experts/learned_activation.h)
  activation_negative,
  activation_slope,
  activation_least,
  layer_norm,
  layer_scale,
  dense_post_norm,
  experts_norm,
  experts_post_norm,
  router_scale,
  expert_scales,
  low_rank_in,
  low_rank_out,
  low_rank_norm,
  stream_router,
  stream_router_norm,
  predictions,
  corrections,
  stream_scale,
};
inline constexpr size_t kSlots = 77;
inline constexpr size_t kBlockMatrices = kProducts;  // q to layer_out

/// Whether no algorithm changes it: what mixers without attention, sinks, choices and biases of experts and activations are
/// made of.
constexpr bool is_fixed(Slot slot) noexcept {
  return (slot >= Slot::convolution && slot <= Slot::mixer_norm) || slot == Slot::correction || slot == Slot::sinks ||
         slot == Slot::expert_biases_up || slot == Slot::expert_biases_down ||
         (slot >= Slot::activation_positive && slot <= Slot::activation_least);
}

/// Name and shape of one weight.
struct BlockWeight {
  Slot slot;
  std::string name;                // below the layer
  uint32_t rows = 0, columns = 0;  // [out, in]; vectors are [columns], with rows 0
  bool is_plain = false;           // a tensor that is never quantized, under its whole name
};

/// The bias of a norm.
constexpr Slot norm_bias(Slot norm) noexcept {
  return static_cast<Slot>(static_cast<uint8_t>(norm) + static_cast<uint8_t>(Slot::input_norm_bias) -
                           static_cast<uint8_t>(Slot::input_norm));
}

/// Whether a layer has experts in the place of its feed-forward.
inline bool has_experts(const Architecture& a, uint32_t layer) noexcept {
  return layer < a.has_experts.size() && a.has_experts[layer];
}

/// Whether that feed-forward is there, too, and both are normed and added (model/joined_experts.h).
inline bool joins_experts(const Architecture& a, uint32_t layer) noexcept {
  return has_experts(a, layer) && a.names.has(ModelPart::experts_norm);
}

inline Mixer mixer_of(const Architecture& a, uint32_t layer) noexcept {
  return layer < a.mixers.size() ? static_cast<Mixer>(a.mixers[layer]) : Mixer::attention;
}
/// Whether a layer has a feed-forward, or experts in its place.
inline bool feeds_forward(const Architecture& a, uint32_t layer) noexcept {
  if (a.is_split && mixer_of(a, layer) != Mixer::none) return false;
  return has_experts(a, layer) || has_feed_forward(a.names);
}
/// Whether norms come behind the sums of a block, as in BERT, and not before its parts.
inline bool norms_sums(const Architecture& a) noexcept {
  return a.is_encoder && !a.names.has(ModelPart::feed_forward_norm);
}
/// Whether the layer norms its input. An encoder that norms its embedding leaves that out in the first.
inline bool norms_input(const Architecture& a, uint32_t layer) noexcept {
  const bool is_normed = layer == 0 && a.is_encoder && a.names.has(ModelPart::embedding_norm);
  return a.names.has(ModelPart::input_norm) && !is_normed;
}
/// Whether a block is of the decoder behind an encoder, and its keys and values are of what the encoder gave.
inline bool is_decoding(const Architecture& a, uint32_t block) noexcept {
  return a.decoder.first > 0 && block >= a.decoder.first;
}
inline bool sees_encoded(const Architecture& a, uint32_t block) noexcept {
  return is_decoding(a, block) && (block - a.decoder.first) % 2 == 1;
}
/// The first block of an encoder, or of the decoder behind one.
inline uint32_t first_of_stack(const Architecture& a, uint32_t block) noexcept {
  return is_decoding(a, block) ? a.decoder.first : 0;
}
/// The module that a block is, or a part of: "layers.3", "decoder.block.1".
std::string module_of_block(const Architecture& architecture, uint32_t block);

/// Columns of the input of `o`.
uint32_t mixed_columns(const Architecture& architecture, uint32_t layer) noexcept;

/// Whether `q` has the rows of k and v behind its own, or for each key head those of its queries, its key and its value.
enum class Fused : uint8_t { none, in_order, by_head };
Fused fused_queries(const Architecture& architecture) noexcept;

/// The architecture of a model all of whose layers are like this one.
Architecture like_layer(const Architecture& architecture, uint32_t layer);
/// With the largest sizes of any layer, for what memory is planned by.
Architecture widest_layer(const Architecture& architecture);
/// Whether later layers read the keys and values of this one.
bool shares_keys(const Architecture& architecture, uint32_t layer) noexcept;
/// The layer whose keys and values it reads.
inline uint32_t keys_of(const Architecture& a, uint32_t layer) noexcept {
  return layer < a.sizes.keys_of.size() ? a.sizes.keys_of[layer] : layer;
}

/// The architecture of one layer, layer 0 of it. With experts its feed-forward is the one that every token sees, or it has none.
Architecture block_of(const Architecture& architecture, uint32_t layer);
/// One expert as a block that is nothing but a feed-forward: gate, up, down.
Architecture expert_of(const Architecture& architecture, uint32_t expert);
inline bool is_expert(const Architecture& architecture) noexcept { return !architecture.names.has(ModelPart::layers); }

/// The weights of a block of this architecture but those of single experts, in the order of its computation, the router last. `gate` has
/// the rows of up behind its own if the architecture has them in one matrix.
List<BlockWeight> block_weights(const Architecture& architecture, uint32_t layer = 0);

/// Values in C order; weights that the architecture lacks stay empty. `inputs`: the precision of the inputs of the
/// layer that a weight belongs to. `packed`: of linear layers, for one row at a time (kernels::pack_columns); `values` then lack them.
struct BlockValues {
  std::array<std::vector<float>, kSlots> packed;
  std::array<std::vector<float>, kSlots> values;
  std::array<InputPrecision, kSlots> inputs{};
  std::vector<float>& operator[](Slot slot) noexcept { return values[static_cast<size_t>(slot)]; }
  const std::vector<float>& operator[](Slot slot) const noexcept { return values[static_cast<size_t>(slot)]; }
};

/// Whether any weight is there.
inline bool has_values(const BlockValues& block) noexcept {
  return std::any_of(block.values.begin(), block.values.end(), [](const auto& values) { return !values.empty(); });
}

}  // namespace wasmquant::model
