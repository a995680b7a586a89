// One transformer block over a part of the batch: whole sequences.
#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "core/result.h"
#include "kernels/hadamard.h"
#include "model/block_weights.h"
#include "model/config/architecture.h"
#include "model/experts/routing.h"
#include "model/linear_input.h"
#include "model/steps/attention.h"
#include "model/steps/rotary.h"

namespace wasmquant::model {

/// How far a block has run on some tokens: up to an input of its linear layers. Empty: not at all.
struct BlockState {
  LinearInput at = LinearInput::attention;
  std::vector<float> input;   // that input; empty: nothing was computed
  std::vector<float> stream;  // the residual stream, which differs from x from feed_forward on
};

/// Keys, with RoPE applied, and values of the tokens of one sequence that blocks have run on.
struct KeyValues {
  size_t past = 0;  // tokens
  std::vector<std::vector<float>> keys,
      values;                                      // by layer, [tokens, kv_heads * head_dim or value_dim]
  std::vector<std::vector<float>> inputs, states;  // of convolutions the last inputs, of recurrences the state
};

/// What an encoder gave of the tokens of some sequences, for the decoder behind it.
struct Encoded {
  std::span<const float> states;  // [tokens, hidden]
  std::span<const uint32_t> lengths;
};

/// Runs blocks of one architecture, with working memory.
class BlockRunner {
 public:
  /// For sequences of at most `longest` tokens. One that is continued is as long as that, for rotations that depend on it.
  BlockRunner(const Architecture& architecture, size_t longest);

  /// x [tokens, hidden], in place; the tokens are consecutive sequences of these lengths. `sink`, if given, gets every
  /// linear layer's input before it is quantized. Rows do not depend on how sequences are batched. `state`, if given, is
  /// where the run begins, behind the input that it holds, and where the sink ends it, or empty if it goes to the end. Blocks of
  /// encoders have neither.
  Status run(const BlockValues& weights, uint32_t layer, std::span<const uint32_t> lengths, std::span<float> x,
             InputSink* sink, BlockState* state = nullptr);
  /// Of layers with experts, run() ends where the tokens are sent to them, with what they bring in `routed`; this adds to x what one
  /// expert, whose weights are loaded, gives, or if x is empty only shows `sink` its inputs. `block`: for what has all experts. `state`: as of
  /// run().
  Status run_expert(const BlockValues& block, const BlockValues& weights, uint32_t layer, uint32_t expert,
                    const Routed& routed, std::span<float> x, InputSink* sink, BlockState* state = nullptr);
  /// Where the runs that follow put it; must outlive them.
  void set_routed(Routed* routed) noexcept { routed_ = routed; }
  /// Keys and values of the same tokens that layers share, and the layers' own inputs, [tokens, layers * width]: where the runs that follow
  /// put and find them. Both outlive these.
  void set_shared(KeyValues* shared, std::span<const float> layer_inputs) noexcept {
    shared_ = shared;
    layer_inputs_ = layer_inputs;
  }
  /// What the runs that follow see of an encoder.
  void set_encoded(Encoded encoded) noexcept { encoded_ = encoded; }
  /// From now on x are the tokens behind those in `cached`, whose keys and values are added to it; null: whole sequences. It outlives
  /// the runs.
  void set_cached(KeyValues* cached) noexcept { cached_ = cached; }

 private:
  /// run() of a block without what follows its feed-forward; false if the sink ends it.
  Result<bool> run_stream(const BlockValues& weights, uint32_t layer, std::span<const uint32_t> lengths,
                          std::span<float> x, InputSink* sink, BlockState* state);
  /// block_parts/layer_input.cpp: run() of several streams; what the low rank gives, to low_rank_; what the layer's own input adds to streams, from
  /// one of them, to output_, false if the sink ends it.
  Status run_streams(const BlockValues& weights, uint32_t layer, std::span<const uint32_t> lengths, std::span<float> x,
                     InputSink* sink, BlockState* state);
  void run_low_rank(const BlockValues& weights, std::span<const float> x);
  Result<bool> run_layer_input(const BlockValues& weights, uint32_t layer, std::span<const float> from,
                               std::span<float> x, InputSink* sink, BlockState* state);
  /// Adds the layer's own input to the stream, and scales it.
  Status add_layer_input(const BlockValues& weights, uint32_t layer, std::span<float> x, InputSink* sink,
                         BlockState* state);
  Status run_post_normed(const BlockValues& weights, uint32_t layer, std::span<const uint32_t> lengths,
                         std::span<float> x);
  /// q_, k_ and v_ from normed_.
  Status project(const BlockValues& weights, uint32_t layer, std::span<const uint32_t> lengths, InputSink* sink);
  /// The same; false if the sink ends the run.
  Result<bool> project_latent(const BlockValues& weights, uint32_t layer, std::span<const uint32_t> lengths,
                              InputSink* sink);
  /// attended_ from normed_, in a layer with a short convolution, or with a recurrence.
  void convolve(const BlockValues& weights, uint32_t layer, std::span<const uint32_t> lengths);
  void run_recurrence(const BlockValues& weights, uint32_t layer, std::span<const uint32_t> lengths);
  /// The same in a layer of Mamba 1; false if the sink ends the run.
  Result<bool> scan(const BlockValues& weights, uint32_t layer, std::span<const uint32_t> lengths, InputSink* sink);
  void norm_states(const BlockValues& weights, std::vector<float>& states) const;
  void scan_tokens(const BlockValues& weights, uint32_t layer, std::span<const uint32_t> lengths);
  void project_states(const BlockValues& weights, uint32_t layer);
  void gate_states(const BlockValues& weights, size_t at_v);
  /// added_ from normed_, in a layer of which attention is the other part; false if the sink ends the run.
  Result<bool> add_state(const BlockValues& weights, uint32_t layer, std::span<const uint32_t> lengths,
                         InputSink* sink);
  /// q_ to `out`, both [tokens_, channels]; each sequence begins behind its tokens in the cache.
  void convolve_channels(const BlockValues& weights, uint32_t layer, std::span<const uint32_t> lengths, size_t channels,
                         std::vector<float>& out);
  /// Rotates heads of each token, a token's first at `x`, `stride` apart.
  void rotate(uint32_t layer, std::span<const uint32_t> lengths, size_t heads, size_t stride, float* x) const;
  void attend_heads(const BlockValues& weights, uint32_t layer, std::span<const uint32_t> lengths);
  Result<bool> attend_all(const BlockValues& weights, uint32_t layer, std::span<const uint32_t> lengths,
                          InputSink* sink);
  Result<bool> show(uint32_t layer, LinearInput input, std::span<const float> values, size_t columns,
                    std::span<const float> x, InputSink* sink, BlockState* state);
  Status run_gate(const BlockValues& weights);
  Status rotate_down_input(std::vector<float>& x);
  void linear(const std::vector<float>& x, const BlockValues& weights, Slot weight, Slot bias, size_t in, size_t out,
              std::vector<float>& y);
  void linear(const std::vector<float>& x, const BlockValues& weights, Slot weight, size_t in, size_t out,
              std::vector<float>& y);
  void split_fused_queries();
  /// Of a head's queries and gates, the gates to gate_.
  void split_gates();
  void sharpen(uint32_t layer, std::span<const uint32_t> lengths, std::vector<float>& x) const;
  /// The matrices that a feed-forward begins with.
  enum class Gate : uint8_t { none, apart, fused };
  Gate gate_of(ModelPart gate, ModelPart fused) const noexcept;
  void run_gated(const BlockValues& weights, Gate gate, size_t wide);
  void gather(const Routed& routed, uint32_t expert);
  Result<bool> run_expert_gate(const BlockValues& block, const BlockValues& weights, uint32_t layer, uint32_t expert,
                               InputSink* sink, BlockState* state);
  Result<bool> send_to_experts(const BlockValues& weights, uint32_t layer, std::span<float> x, InputSink* sink,
                               BlockState* state);
  /// Norm and rotation of q or k.
  void position(const BlockValues& weights, uint32_t layer, Slot norm, size_t heads, std::span<const uint32_t> lengths,
                std::vector<float>& x);
  void apply_norm(const BlockValues& weights, Slot slot, const float* x, size_t columns, std::vector<float>& y) const;
  /// Keys and values of the tokens, to be read by later layers, or those of an earlier one.
  void share(uint32_t layer);
  /// block_parts/encoded_attention.cpp: attended_ from normed_ and what the encoder gave; false if the sink ends the run.
  Result<bool> attend_encoded(const BlockValues& weights, uint32_t layer, std::span<const uint32_t> lengths,
                              InputSink* sink);
  void project_encoded(const BlockValues& weights, uint32_t layer);
  void add_to_x(const BlockValues& weights, Slot post_norm, std::span<float> x);
  /// The input of the feed-forward, in normed_, then x with what attention gives.
  void finish_attention(const BlockValues& weights, uint32_t layer, std::span<float> x);

  const Architecture& architecture_;
  size_t longest_, tokens_ = 0;
  KeyValues* cached_ = nullptr;
  Routed* routed_ = nullptr;
  KeyValues* shared_ = nullptr;
  std::span<const float> layer_inputs_;
  Encoded encoded_;
  RotaryTable table_, sliding_table_,
      long_table_;                        // the last of sequences longer than the scaling's original positions
  float gate_limit_ = Streams::kNoLimit;  // of the layer
  std::vector<float> active_, low_rank_;
  std::vector<float> normed_, output_, fused_, q_, k_, v_, attended_, added_, gate_, up_, quantized_, product_, change_;
  AttentionMemory attention_;
  RelativeBias bias_;
  Hadamard hadamard_;  // rotates the input of down; created on first use
  std::vector<double> row_;
};

}  // namespace wasmquant::model
