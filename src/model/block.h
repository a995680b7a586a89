// One transformer block over a part of the batch: whole sequences.
#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "core/result.h"
#include "kernels/hadamard.h"
#include "model/architecture.h"
#include "model/attention.h"
#include "model/block_weights.h"
#include "model/linear_input.h"
#include "model/rotary.h"

namespace wasmquant::model {

/// How far a block has run on some tokens: up to an input of its linear layers. Empty: not at all.
struct BlockState {
  LinearInput at = LinearInput::attention;
  std::vector<float> input;   // that input; empty: nothing was computed
  std::vector<float> stream;  // the residual stream, which differs from x from feed_forward on
};

/// Keys, with RoPE applied, and values of the tokens of one sequence that blocks have run on.
struct KeyValues {
  size_t past = 0;                               // tokens
  std::vector<std::vector<float>> keys, values;  // by layer, [tokens, kv_heads * head_dim]
};

/// Runs blocks of one architecture, with working memory.
class BlockRunner {
 public:
  /// For sequences of at most `longest` tokens.
  BlockRunner(const Architecture& architecture, size_t longest);

  /// x [tokens, hidden], in place; the tokens are consecutive sequences of these lengths. `sink`, if given, gets every
  /// linear layer's input before it is quantized. Rows do not depend on how sequences are batched. `state`, if given, is
  /// where the run begins, behind the input that it holds, and where the sink ends it, or empty if it goes to the end. Blocks of
  /// encoders have neither.
  Status run(const BlockValues& weights, uint32_t layer, std::span<const uint32_t> lengths, std::span<float> x,
             InputSink* sink, BlockState* state = nullptr);
  /// From now on x are the tokens behind those in `cached`, whose keys and values are added to it; null: whole sequences. It outlives
  /// the runs.
  void set_cached(KeyValues* cached) noexcept { cached_ = cached; }

 private:
  Status run_encoder(const BlockValues& weights, uint32_t layer, std::span<const uint32_t> lengths, std::span<float> x);
  Status attend_all(const BlockValues& weights, uint32_t layer, std::span<const uint32_t> lengths, InputSink* sink);
  Result<bool> show(uint32_t layer, LinearInput input, std::span<const float> values, size_t columns,
                    std::span<const float> x, InputSink* sink, BlockState* state);
  Status run_gate(const BlockValues& weights);
  Status rotate_down_input(std::vector<float>& x);
  void linear(const std::vector<float>& x, const BlockValues& weights, Slot weight, Slot bias, size_t in, size_t out,
              std::vector<float>& y);
  void apply_rope(std::vector<float>& x, size_t heads, const std::vector<float>& norm, const RotaryTable& table,
                  std::span<const uint32_t> lengths);

  const Architecture& architecture_;
  size_t tokens_ = 0;
  KeyValues* cached_ = nullptr;
  RotaryTable table_, sliding_table_;
  std::vector<float> normed_, q_, k_, v_, attended_, gate_, up_, quantized_, product_;
  AttentionMemory attention_;
  Hadamard hadamard_;  // rotates the input of down; created on first use
  std::vector<double> row_;
};

}  // namespace wasmquant::model
