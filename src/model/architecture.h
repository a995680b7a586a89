// A transformer as config.json describes it: sizes, and family differences. Decoders are of the Llama architecture:
//   x += o(attention(q, k, v of norm(x)));   x += down(activation(gate(n)) * up(n)),  n = norm(x)
// Encoders are of BERT's, whose attention sees the whole sequence:
//   x = norm(x + o(attention(q, k, v of x)));   x = norm(x + down(activation(up(x))))
// Keys of transformers 4 and 5.
#pragma once
#include <cstdint>
#include <string>

#include "core/json.h"
#include "core/list.h"
#include "core/result.h"
#include "kernels/exponential.h"

namespace wasmquant::model {

/// Rotary position embedding: the angle of dimension pair i at position p is p * frequency(i).
struct Rope {
  enum class Scaling : uint8_t { none, linear, llama3 };
  double theta = 10000;
  Scaling scaling = Scaling::none;
  double factor = 1;                       // linear, llama3: low frequencies are divided by it
  double low_factor = 1, high_factor = 4;  // llama3: periods longer than original_positions / low_factor are low
  double original_positions = 8192;
};

/// Sizes and family differences of one model.
struct Architecture {
  std::string family;
  uint32_t vocabulary = 0, hidden = 0, intermediate = 0, layers = 0;
  uint32_t heads = 0, kv_heads = 0, head_dim = 0;
  uint32_t max_positions = 0;  // tokens of a sequence
  bool is_encoder = false;
  uint32_t token_types = 0, first_position = 0;  // of encoders: rows of that table, and the position of the first token
  kernels::Activation activation = kernels::Activation::silu;
  double norm_epsilon = 1e-6;
  bool norm_plus_one = false;  // norms multiply by 1 + weight
  bool head_norms = false;     // q and k are normed per head, before the rotation
  bool post_norms = false;     // the outputs of attention and feed-forward are normed before they are added to x
  bool qkv_bias = false, output_bias = false, mlp_bias = false;
  bool tied_head = false;           // the head's weight is the embedding
  bool rotated_down_input = false;  // the input of down is multiplied by a Hadamard matrix
  float embedding_scale = 1;
  float attention_scale = 1;               // of q * k
  float attention_cap = 0, logit_cap = 0;  // cap * tanh(x / cap); 0: none
  uint32_t window = 0;                     // keys that sliding layers see, including the token's own
  List<bool> is_sliding;                   // by layer
  Rope rope, sliding_rope;                 // of full and of sliding layers

  uint32_t query_columns() const noexcept { return heads * head_dim; }
  uint32_t key_columns() const noexcept { return kv_heads * head_dim; }
};

/// The model_type of every supported family of decoders or encoders: "llama, mistral, …" for messages.
std::string family_names(bool encoders);

/// `config` is the parsed config.json. Errors, `where` a JSON pointer: config-invalid (a size is missing or
/// impossible), not-implemented (another family, RoPE scaling type or activation; the message lists what is supported).
Result<Architecture> read_architecture(const json::Value& config);

/// Whether the sizes are those of a model, as read_architecture gives them: for one that was not read from a config.json.
bool holds_together(const Architecture& architecture) noexcept;

}  // namespace wasmquant::model
