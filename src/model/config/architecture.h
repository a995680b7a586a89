// A transformer as config.json describes it: sizes, and family differences. Decoders are variations of Llama's architecture:
//   x += o(attention(q, k, v of norm(x)));   x += down(activation(gate(n)) * up(n)),  n = norm(x)
// Encoders, whose attention sees the whole sequence, are such ones or BERT's:
//   x = norm(x + o(attention(q, k, v of x)));   x = norm(x + down(activation(up(x))))
// Keys of transformers 4 and 5.
#pragma once
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "core/json.h"
#include "core/list.h"
#include "core/result.h"
#include "kernels/exponential.h"
#include "model/config/model_names.h"

namespace wasmquant::model {

/// Rotary position embedding: the angle of dimension pair i at position p is p * frequency(i).
struct Rope {
  enum class Scaling : uint8_t { none, linear, llama3, yarn, longrope, proportional };
  double theta = 10000;
  Scaling scaling = Scaling::none;
  double factor = 1;                       // linear, llama3, yarn: low frequencies are divided by it
  double low_factor = 1, high_factor = 4;  // llama3: periods longer than original_positions / low_factor are low
  double fast_rotations = 32,
         slow_rotations = 1;  // yarn: over original_positions; between them frequencies are blended
  bool is_truncated = true;   // yarn: to whole pairs
  double original_positions = 8192;
  double amplitude = 1;  // of sines and cosines
  std::vector<float> short_factors,
      long_factors;  // longrope: divide frequencies, in sequences up to original_positions and longer
  double share =
      1;  // of a head's dimensions, the first ones; proportional: of its pairs, with frequencies of the whole head
  bool is_pairs = false;  // dimension 2 i rotates with 2 i + 1, not i with i + half

  /// Dimensions of a head that rotate.
  uint32_t dimensions(uint32_t head_dim) const noexcept {
    return scaling == Scaling::proportional ? head_dim : static_cast<uint32_t>(head_dim * share);
  }
};

/// Queries grow with their position p, by 1 + rate ln(1 + floor(p / span)): those of all layers, or of layers that do not rotate, whose
/// first position is then 1 (Llama 4).
struct QueryGrowth {
  double rate = 0, span = 8192;
  bool is_unrotated = false;
};

/// A mixture of experts in the place of a feed-forward (N. Shazeer et al. 2017): to which of them a token goes, and their weights.
struct Routing {
  enum class Scores : uint8_t { softmax, sigmoid, softmax_of_chosen };
  Scores scores = Scores::softmax;
  uint32_t experts = 0, chosen = 0;      // 0: the model has none
  uint32_t width = 0, shared_width = 0;  // of an expert, and of the one that every token sees
  uint32_t groups = 1,
           chosen_groups = 1;  // experts are chosen from the groups whose `group_best` best have the largest sum
  uint32_t group_best = 2;
  bool is_normalized = false;  // the weights of a token's experts add up to `scale`
  float scale = 1;
  bool scales_input = false;    // the weights multiply what experts see, not what they give
  bool is_input_major = false;  // tensors of all experts are stored as [experts, in, out]
  // Of experts whose gate and up alternate and are clamped (experts/clamped_gate.h), stored as such; 0: others
  float gate_limit = 0, gate_slope = 0;
};

/// Latent attention (DeepSeek-AI 2024): keys and values are products of a narrow vector of each token, of a key only the last dimensions
/// rotate, which all heads share.
struct Latent {
  uint32_t rank = 0;        // of that vector; 0: attention is another
  uint32_t query_rank = 0;  // queries are products of such a vector, too; 0: they are not
  uint32_t rope_dim = 0, value_dim = 0;
};

/// Biases of scores by the distance of key and query (T5): rows of a table, one for each of the nearest distances, then wider ones.
struct Relative {
  uint32_t buckets = 0;  // of both sides; 0: there is no table
  uint32_t farthest = 0;
  bool has_own_tables = false;  // each layer has one; else all read that of the first
};

/// What mixes the tokens of a layer.
enum class Mixer : uint8_t {
  attention,
  convolution,  // a short one (LFM2)
  delta,        // the gated delta rule (S. Yang et al. 2024)
  state_space,  // Mamba 2 (T. Dao, A. Gu 2024)
  selective,    // Mamba 1 (A. Gu, T. Dao 2023)
  both,         // attention and Mamba 2 read the same input, and what they give is added up (Falcon-H1)
  none          // the layer is nothing but a feed-forward
};

/// All but the first two and the last: a state of each head, [key_dim, value_dim], that a token changes and then reads (block_parts/recurrent_mixer.cpp). Of
/// Mamba 1 a head is a channel, and all have the same key and query (block_parts/selective_scan.cpp).
struct Recurrence {
  uint32_t heads = 0, key_heads = 0;  // neighbouring heads share a key and a query
  uint32_t key_dim = 0, value_dim = 0;
  uint32_t norm_columns = 0;  // of the values that one norm sees
  bool norms_first = false;   // values are normed, then gated; else gated, then normed
  uint32_t step_rank = 0;     // of Mamba 1: the length of the vector that steps are made of
  double norm_epsilon = 0;    // of Mamba 1, for the norms of that vector, of keys and of queries
  double least_step = 0, largest_step = std::numeric_limits<double>::infinity();

  uint32_t key_columns() const noexcept { return key_heads * key_dim; }
  uint32_t value_columns() const noexcept { return heads * value_dim; }
};

/// Where layers differ from the model's sizes. Each list is empty, or has one for each layer.
struct LayerSizes {
  List<uint32_t> head_dims, kv_heads, widths;
  List<bool> has_values;   // false: the projected keys are values, too
  List<uint32_t> keys_of;  // the layer whose keys and values this one reads, itself or one before

  bool empty() const noexcept { return head_dims.empty() && keys_of.empty(); }
};

/// Vectors that a token's number and its embedding give each layer, which are added to the stream behind the feed-forward:
///   x += norm(layer_out(activation(layer_gate(x)) * input))      (Gemma 3n)
struct LayerInputs {
  uint32_t width = 0;   // 0: there are none
  uint32_t tokens = 0;  // rows of their table; those beyond have that of the first
};

/// Streams of which a block computes one, and the others follow (steps/streams.h), and what else the blocks of Gemma 3n have.
struct Streams {
  static constexpr uint32_t kMost = 8;
  static constexpr float kNoLimit = -std::numeric_limits<float>::infinity();
  uint32_t count = 1, active = 0;
  uint32_t low_rank = 0;  // columns of the narrow matrices whose product attention has with it; 0: none
  std::vector<float>
      gate_limits;  // by layer, in standard deviations above the mean: only what a gate has above it counts
};

/// A decoder behind an encoder (T5). Each of its layers is two blocks: attention to the tokens before, then attention to what the encoder
/// gave, with the feed-forward. The blocks before `first` are the encoder's.
struct Decoder {
  uint32_t first = 0;          // 0: the model is one stack
  uint32_t start = 0;          // the token in front of a text that is predicted
  bool scales_logits = false;  // by 1 / root(hidden)
  ModelNames names;  // modules of the second block of a layer, and those behind the blocks; none: there is no decoder
};

/// Of the stream, and of heads.
struct Norms {
  double epsilon = 1e-6;
  bool plus_one = false;       // they multiply by 1 + weight
  bool subtract_mean = false;  // LayerNorm, not RMSNorm
  bool over_heads = false;     // q and k are normed over all heads, not per head
  bool behind_rope = false;    // those of q and k
};

/// Factors and limits of values.
struct Scales {
  float embedding = 1;
  float residual = 1;  // of what is added to x
  float logits = 1;
  float attention = 1;                     // of q * k
  float attention_cap = 0, logit_cap = 0;  // cap * tanh(x / cap); 0: none
  float qkv_clip = 0;                      // q, k and v are limited to it; 0: not
};

/// Sizes and family differences of one model.
struct Architecture {
  std::string family;
  uint32_t vocabulary = 0, hidden = 0, intermediate = 0, layers = 0;
  uint32_t heads = 0, kv_heads = 0, head_dim = 0;
  uint32_t max_positions = 0;  // tokens of a sequence
  bool is_encoder = false;
  uint32_t token_types = 0;     // of encoders: rows of that table
  uint32_t first_position = 0;  // of learned ones, that of the first token
  kernels::Activation activation = kernels::Activation::silu;
  ModelNames names;  // which norms, biases and products there are
  Norms norms;
  Scales scales;
  bool has_slopes = false;          // scores of keys fall with their distance, by head (O. Press et al. 2021, ALiBi)
  bool is_transposed = false;       // linear layers of blocks are stored [in, out]
  bool is_parallel = false;         // the feed-forward reads x as it was before attention was added
  bool tied_head = false;           // the head's weight is the embedding
  bool rotated_down_input = false;  // the input of down is multiplied by a Hadamard matrix
  uint32_t window = 0;              // keys that sliding layers see, including the token's own; of encoders on each side
  bool is_chunked =
      false;  // windows are those of the whole sequence, cut into such parts: a token sees its own up to itself
  QueryGrowth query_growth;
  List<bool> is_sliding, is_rotated;  // by layer
  LayerSizes sizes;
  LayerInputs layer_inputs;
  Streams streams;
  Latent latent;
  Relative relative;
  Decoder decoder;
  bool gated_attention =
      false;  // queries have as many gates behind each head, whose sigmoids scale what attention gives
  uint32_t convolution_width = 0;  // tokens that short convolutions see; 0: no layer has one
  Recurrence recurrence;
  List<uint8_t> mixers;   // a Mixer by layer; empty: attention
  bool is_split = false;  // a layer with a mixer has no feed-forward
  /// Of the products of linear layers, by their place in ModelPart, before biases; behind them those of the gates, values, keys, queries
  /// and steps of a state space. Empty: all are 1.
  List<float> factors;
  Routing routing;
  List<bool> has_experts;   // by layer
  Rope rope, sliding_rope;  // of full and of sliding layers

  uint32_t query_columns() const noexcept { return heads * head_dim; }
  uint32_t key_columns() const noexcept { return kv_heads * head_dim; }
  /// Of a head: dimensions that may rotate, and those of a value.
  uint32_t rope_dim() const noexcept { return latent.rank > 0 ? latent.rope_dim : head_dim; }
  uint32_t value_dim() const noexcept { return latent.rank > 0 ? latent.value_dim : head_dim; }
  uint32_t value_columns() const noexcept { return kv_heads * value_dim(); }
  /// Of what is behind the blocks.
  const ModelNames& names_behind() const noexcept { return decoder.first > 0 ? decoder.names : names; }
  /// What attention gives.
  uint32_t attended_columns() const noexcept { return heads * value_dim(); }
};

/// The model_type of every supported family of decoders or encoders: "llama, mistral, …" for messages.
std::string family_names(bool encoders);

/// `config` is the parsed config.json. Errors, `where` a JSON pointer: config-invalid (a size is missing or
/// impossible), not-implemented (another family, RoPE scaling type or activation; the message lists what is supported).
Result<Architecture> read_architecture(const json::Value& config);

/// Adds the blocks of the decoder to an encoder whose `decoder` has names. Errors: config-invalid.
Status add_decoder(const json::Value& config, Architecture& encoder);

/// Whether the sizes are those of a model, as read_architecture gives them: for one that was not read from a config.json.
bool holds_together(const Architecture& architecture) noexcept;

}  // namespace wasmquant::model
