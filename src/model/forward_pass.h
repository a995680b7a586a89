// A forward pass of a batch of token sequences, block by block: the caller supplies the weights of one step at a time,
// as float32 and in tiles; memory contains that step and the activations of the batch.
//
//   set_tokens
//   embedding   for each tile of its rows: load_embedding, then run_embedding on every portion
//   blocks      block(slot) filled for every slot, then run_block on every portion
//   head        final_norm filled, begin_head, then for each tile of its rows: load_head, run_head on every portion
//
// Portions are whole sequences; they may be run in any order and with pauses between them. Those that are never run, since
// another pass runs them, take no memory; nothing is then known of their sequences.
#pragma once
#include <array>
#include <limits>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "core/result.h"
#include "model/block_runners.h"
#include "model/portion.h"
#include "model/steps/layer_table.h"
#include "model/token_loss.h"

namespace wasmquant::model {

/// Tables whose rows are added to the embedding of a token, the norm of the sum, and biases behind the blocks; empty: the architecture
/// lacks them.
struct OuterTables {
  std::vector<float> positions, types;  // [max_positions + first_position, hidden], [token_types, hidden]
  std::vector<float> norm, norm_bias, final_norm_bias, head_bias;
  std::vector<float> encoder_norm;                                           // behind the encoder of an encoder-decoder
  std::array<std::vector<float>, Streams::kMost - 1> stream_in, stream_out;  // [hidden, hidden]
  std::vector<float> layer_projection, layer_norm;  // of layers' own inputs: [layers * width, hidden], [width]
};

/// How the states of a sequence's tokens become one embedding: their mean, or that of the first token.
enum class Pooling : uint8_t { mean, first, last };

/// The token with the largest logit so far.
struct NextToken {
  int32_t token = -1;
  float logit = -std::numeric_limits<float>::infinity();
};

/// Rows of the head, packed.
struct HeadRows {
  uint32_t first = 0;
  size_t width = 0;
  std::vector<float> packed;
};

/// The state of one forward pass.
class ForwardPass {
 public:
  /// `precision`: of the inputs of every layer of the blocks.
  ForwardPass(Architecture architecture, InputPrecision precision);
  ForwardPass(const ForwardPass&) = delete;
  ForwardPass& operator=(const ForwardPass&) = delete;

  const Architecture& architecture() const noexcept { return architecture_; }
  /// From now on rotates the input of down, as for models whose config.json says so.
  void rotate_down_input() noexcept { architecture_.rotated_down_input = true; }

  /// Sequences one after another, of these lengths. Errors: argument-invalid (no sequences, one without tokens, all of
  /// one token, more than max_positions, a token outside the vocabulary; the message names it).
  /// `positions`: if not 0, of a single sequence that is continued to at most so many tokens, whose keys and values are kept.
  Status set_tokens(std::span<const int32_t> tokens, std::span<const uint32_t> lengths, size_t positions = 0);

  /// The next token of a sequence that is continued: the batch is that token, behind those before. Every step has run on these. Errors:
  /// state-invalid (no such sequence, or all its positions are taken), argument-invalid (outside the vocabulary).
  Status extend(int32_t token);
  /// Keeps weights of a sequence that is continued: rows of the embedding or head, or the block in block(). Kept ones, all rows of them,
  /// run without being loaded again.
  void keep_embedding(std::span<const float> rows, uint32_t first);
  void keep_block(uint32_t layer);
  void keep_head(std::span<const float> rows, uint32_t first);
  Status run_kept_block(uint32_t layer);
  void run_kept_embedding() noexcept;
  void run_kept_head();

  /// Whether one of the batch is in [first, end), or its row in the table of layers' own inputs.
  bool has_token(size_t first, size_t end) const noexcept;
  bool has_layer_row(size_t first, size_t end) const noexcept {
    return model::has_layer_row(architecture_, tokens_, first, end);
  }

  /// From now on only the second half of a sequence is scored, as llama-perplexity does: of L tokens, those from
  /// L / 2 + 1 on, rounded down. Of an encoder-decoder what the decoder predicts.
  void score_second_half() noexcept { scores_second_half_ = true; }
  /// Positions of the batch whose next token is scored: [first, second) of a sequence, empty if it is too short.
  std::pair<size_t, size_t> scored(size_t sequence) const noexcept;
  /// The token that follows each position of the batch; -1 after the last of a sequence.
  std::vector<int32_t> targets() const;

  size_t sequences() const noexcept { return lengths_.size(); }
  /// Tokens of the batch before the portion, and with it.
  std::pair<size_t, size_t> tokens_of(size_t portion) const noexcept {
    return {portions_[portion].begin, portions_[portion].end};
  }
  size_t portions() const noexcept { return portions_.size(); }
  /// Portions spread over the batch, in order, with about so many tokens or more; all if there are fewer.
  List<uint32_t> sampled_portions(uint64_t tokens) const;

  /// Rows [first, first + rows.size() / hidden) of the embedding, written to the portion's tokens that use them.
  void run_embedding(size_t portion, std::span<const float> rows, uint32_t first) noexcept;

  /// The same of the table of layers' own inputs.
  void run_layer_table(size_t portion, std::span<const float> rows, uint32_t first);

  /// Values of the next block; the shapes are those of block_weights().
  BlockValues& block() noexcept { return block_; }
  /// `keep` false: activations are unchanged, for passes that only feed `sink`.
  Status run_block(size_t portion, uint32_t layer, InputSink* sink, bool keep = true);

  /// Of a layer with experts, behind run_block: whether one of them has tokens, and what it gives them, added.
  bool has_expert(uint32_t expert) const noexcept;
  Status run_expert(size_t portion, uint32_t layer, uint32_t expert, InputSink* sink, bool keep = true);
  /// Values of the next expert; the shapes are those of block_weights() of expert_of().
  BlockValues& expert() noexcept { return expert_; }

  /// From now on a block that a sink ended resumes there, while its weights before that place stay as they are: values
  /// are the same, and each is computed once. Takes state_bytes() per token.
  void keep_states() noexcept { states_.resize(portions_.size()); }
  /// Blocks run from their beginning again: weights were changed.
  void forget_states() noexcept {
    for (BlockState& state : states_) state = {};
  }

  /// The same with other values, on a copy of the activations made at the first such call.
  Status run_reference(size_t portion, uint32_t layer, const BlockValues& block, InputSink* sink, bool keep);

  /// That of the head's input; float32 at first.
  void set_head_precision(InputPrecision precision) noexcept { head_inputs_ = precision; }

  /// The embedding of each sequence once all blocks have run, [sequences, hidden].
  std::vector<float> embeddings(Pooling pooling);
  OuterTables& tables() noexcept { return tables_; }

  std::vector<float>& final_norm() noexcept { return final_norm_; }
  /// Mean over tokens of the squared norm of the current activations.
  double stream_energy() const noexcept;

  /// Applies the final norm, once: the head can begin again. `sink` gets the head's input before it is rounded to its precision.
  Status begin_head(InputSink* sink);
  /// Logits of tokens [first, first + rows.size() / hidden) at the portion's positions, [tokens, rows].
  std::span<float> logits(size_t portion, std::span<const float> rows, uint32_t first);
  /// The same, added to the losses. Tiles of rows come in order, each to every portion.
  void run_head(size_t portion, std::span<const float> rows, uint32_t first);

  /// Sum over the scored positions of the negative log-likelihood of the token that follows, in nats; 0 if there are
  /// none.
  double loss_of(size_t sequence) const noexcept;
  /// The token with the largest logit at the sequence's last position, the first of equals; -1 when a logit is not
  /// finite or the head has not run.
  int32_t next_token(size_t sequence) const noexcept { return sequence < next_.size() ? next_[sequence].token : -1; }

  /// Bytes of activations per token of the batch, and of working memory for sequences of at most `longest` tokens.
  static uint64_t bytes_per_token(const Architecture& architecture) noexcept;
  static uint64_t state_bytes(const Architecture& architecture) noexcept;
  /// Of a kept matrix.
  static uint64_t kept_bytes(size_t rows, size_t columns) noexcept;
  /// Of keys and values, per token of a sequence that is continued.
  static uint64_t cache_bytes(const Architecture& architecture) noexcept;
  static uint64_t working_bytes(const Architecture& architecture, size_t longest) noexcept;

 private:
  /// Of the batch's last token.
  const float* last_row() const noexcept;
  std::span<float> logits_of(const float* x, size_t tokens, std::span<const float> rows, uint32_t first);
  void finish_logits(std::span<float> logits, size_t width, uint32_t first) const noexcept;
  void finish_embedding(Portion& portion) noexcept;
  /// Adds what experts gave of an earlier layer.
  void finish_experts(Portion& portion) const;
  /// Applies the final norm, or that behind an encoder, once.
  void finish_stream(Portion& portion) const;
  void finish_encoder(Portion& portion, bool is_reference) const;
  bool continues() const noexcept { return positions_ > 0; }
  void take_largest(std::span<const float> logits, size_t width, size_t sequence, uint32_t first) noexcept;
  Status run(size_t portion, uint32_t layer, const BlockValues& block, bool is_reference, InputSink* sink, bool keep,
             BlockState* state);

  Architecture architecture_;
  bool scores_second_half_ = false;
  std::vector<int32_t> tokens_;
  std::vector<uint32_t> lengths_;  // of the sequences
  std::vector<size_t> begins_;     // their first tokens
  SourceText source_;              // of an encoder in front of the decoder
  std::vector<Portion> portions_;
  std::vector<BlockState> states_;  // of x, by portion; empty: none are kept
  BlockRunners runners_;
  BlockValues block_, expert_;
  OuterTables tables_;
  std::vector<float> final_norm_, scratch_, product_;
  InputPrecision head_inputs_ = InputPrecision::float32;
  std::unique_ptr<TokenLoss> loss_;
  std::vector<NextToken> next_;  // by sequence
  size_t positions_ = 0;
  KeyValues cached_;
  std::vector<float> kept_embedding_;     // [vocabulary, hidden]
  std::vector<BlockValues> kept_blocks_;  // by layer
  std::vector<HeadRows> kept_head_;
};

}  // namespace wasmquant::model
