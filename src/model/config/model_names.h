// The modules of a model by what they are, as words of the family's row in families/table/forward.def:
//   "q=self_attn.q_proj+ k=self_attn.k_proj ..."     '+': with a bias
#pragma once
#include <array>
#include <bitset>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "core/json.h"
#include "core/list.h"

namespace wasmquant::model {

/// What a module is. Names of layers' modules are below the layer, the others below a prefix.
enum class ModelPart : uint8_t {
  q,
  k,
  v,
  state_in,        // of a state space that attention has with it (Mixer::both)
  mixer_strength,  // of gated delta nets
  q_b,  // of latent attention: from the narrow vectors that q and k then make, keys' with the rotating part behind
  kv_b,
  encoded_k,  // of attention to what an encoder gave
  encoded_v,
  state_out,
  o,
  gate,
  up,
  down,
  layer_gate,  // of a layer's own input: from the stream, what it is multiplied by
  layer_out,   // from there back to the stream
  qkv,         // q, k and v in one matrix, one after another
  heads_qkv,   // by key head: its queries, its key, its value
  gate_up,     // gate, then up
  mixer_in,  // of what mixes tokens in the place of attention: of gated delta nets q, k and v; of Mamba gate and channels, too
  mixer_out,
  mixer_gate,  // gated delta nets: gate
  mixer_step,  // their steps, or strengths and steps by key head; then mixer_in has gates by key head, too. Of Mamba 1 the
               // steps of all channels, from a narrow vector
  mixer_states,  // of Mamba 1: from channels that vector, keys and queries
  router,        // scores of experts
  expert_gate,   // of the expert in the place of '#'
  expert_up,
  expert_down,
  shared_gate,  // of the expert that every token sees
  shared_up,
  shared_down,
  shared_scale,  // the score of that expert
  shared_gate_up,
  experts_gate_up,  // a tensor with those of all experts, [experts, gate and up, in]
  experts_down,
  input_norm,
  q_norm,
  k_norm,
  v_norm,
  attention_post_norm,
  feed_forward_norm,
  feed_forward_post_norm,
  dense_post_norm,  // of experts that a feed-forward has with it: of what that gives, of their input, of their sum
  experts_norm,
  experts_post_norm,
  layer_norm,   // behind layer_out
  low_rank_in,  // what is added to attention, a product of two narrow matrices and its norm
  low_rank_out,
  low_rank_norm,
  stream_router,  // of several streams (model/steps/streams.h)
  stream_router_norm,
  predictions,
  corrections,
  stream_scale,   // of the one that a block computes; the name of a tensor, as those behind sinks
  layer_scale,    // of the stream behind a block; the name of a tensor, as those behind sinks
  correction,     // of scores, for the choice of experts; the name of a tensor, as those behind sinks
  router_scale,   // of the input of such a router
  expert_scales,  // of the weights of experts
  conv,           // short convolution
  step_bias,
  decay,
  relative_bias,   // a table of scores by distance
  skip,            // of values, to what the layer gives
  mixer_norm,      // of Mamba 1 of that vector
  mixer_key_norm,  // of Mamba 1
  mixer_query_norm,
  activation,        // what precedes the names of its numbers, if it has such
  sinks,             // scores of a key without a value, by head
  expert_biases_up,  // of all experts, [experts, gate and up]
  expert_biases_down,
  embedding,         // may be called otherwise, too: names between bars
  layer_table,       // a row of each token with the inputs of all layers
  layer_projection,  // what is added to it, from the embedding
  layer_table_norm,  // of those, by layer
  stream_in,  // of each stream but the first, in the place of '#': from the embedding, and from the streams to one
  stream_out,
  positions,
  types,
  embedding_norm,
  final_norm,
  head,
  layers,   // what precedes the number of a layer
  prefixes  // what may precede all others but the head, between bars
};
inline constexpr size_t kParts = 83;

/// Module names of one model.
class ModelNames {
 public:
  ModelNames() = default;
  /// The words of a row that hold for a config.json.
  static ModelNames of_row(std::string_view words, const json::Value& config);
  /// Of a text() of another.
  explicit ModelNames(std::string_view words);

  bool has(ModelPart part) const noexcept { return !modules_[static_cast<size_t>(part)].empty(); }
  bool has_bias(ModelPart part) const noexcept { return biases_[static_cast<size_t>(part)]; }
  /// Whether it has parameters: norms may have none.
  bool has_weight(ModelPart part) const noexcept { return has(part) && of(part) != "-"; }
  /// Sets the module of a part, without a bias; "" removes the part.
  void set(ModelPart part, std::string module) noexcept {
    modules_[static_cast<size_t>(part)] = std::move(module);
    biases_.reset(static_cast<size_t>(part));
  }
  /// The module of another part, with its bias if it has one.
  void copy(ModelPart part, ModelPart from) {
    const bool has_one = has_bias(from);
    set(part, of(from));
    if (has_one) biases_.set(static_cast<size_t>(part));
  }
  /// "" without one.
  const std::string& of(ModelPart part) const noexcept { return modules_[static_cast<size_t>(part)]; }
  /// What may precede the names of modules outside the layers, and of layers: "model.", "".
  List<std::string> prefixes() const;
  /// Those that a part may have, between bars.
  List<std::string> names_of(ModelPart part) const;

  std::string text() const;

 private:
  void add(std::string_view words, const json::Value* config);
  void add_word(std::string_view word, const json::Value* config);

  std::array<std::string, kParts> modules_;
  std::bitset<kParts> biases_;
};

/// Whether layers without experts have one.
inline bool has_feed_forward(const ModelNames& names) noexcept {
  return names.has(ModelPart::up) || names.has(ModelPart::gate_up);
}

/// Whether `layer` is in a block and has the name of a linear layer of the blocks of any family.
bool is_block_layer(std::string_view layer);

}  // namespace wasmquant::model
