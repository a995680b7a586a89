// The inputs of a transformer's linear layers: the precision in which they are multiplied, and what calibration observes of
// them and of the keys and values of attention.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/result.h"
#include "numeric/storage_dtype.h"

namespace wasmquant::model {

/// The precision of the inputs of a linear layer. The last four are those in which llama.cpp's CPU kernels multiply
/// weights of its types (vec_dot_type in ggml-cpu.c).
enum class InputPrecision : uint8_t {
  float32,
  int8_per_token,  // fake-quantized: codes -127..127, scale absmax / 127 of each token's row
  float16,
  bfloat16,
  q8_0,  // each 32 values: codes -127..127 of x * (127 / absmax), their scale absmax / 127 as float16
  q8_k   // each 256 values likewise, with a float32 scale
};

/// x [rows, columns] to its quantized values, in place; columns are a multiple of the block of q8_0 and q8_k. Rows
/// (of q8_0 and q8_k all of x) that hold NaN or infinity stay as they are, so that results are NaN, too.
void quantize_inputs(InputPrecision precision, std::span<float> x, size_t columns) noexcept;

/// In which llama.cpp multiplies the inputs of a weight that a GGUF file stores as this; float32 for other dtypes.
InputPrecision llama_cpp_precision(StorageDtype weight) noexcept;

/// One matrix may feed several layers: q, k and v read `attention`, gate and up read `feed_forward`.
/// Those of latent attention are its narrow vectors, behind their norms; of Mamba 1 the convolved channels, and the vector that
/// its steps are made of. `state_output` is what the state space of Mixer::both gives.
enum class LinearInput : uint8_t {
  attention,
  latent_query,
  latent_key,
  encoded,  // what an encoder gave, of its tokens
  state_output,
  attention_output,
  feed_forward,
  feed_forward_output,
  layer_input,   // the stream behind the feed-forward, for what a layer's own input is multiplied by
  layer_output,  // that product
  head
};
inline constexpr size_t kBlockInputs = 10;  // all but `head`

/// Keys and values: the outputs of k_proj and v_proj, and both as attention reads them, after their norms and RoPE.
enum class CachedValue : uint8_t { projected_key, projected_value, key, value };

/// Receives the inputs of linear layers, and keys and values.
class InputSink {
 public:
  /// x [tokens, columns], tokens in order; called once per portion of the batch. `layer`: the block. An error ends the
  /// run.
  virtual Status accept(uint32_t layer, LinearInput input, std::span<const float> x, size_t columns) = 0;
  /// Those of an expert, of the tokens that are sent to it; none for a portion without such tokens.
  virtual Status accept_expert(uint32_t layer, uint32_t /*expert*/, LinearInput input, std::span<const float> x,
                               size_t columns) {
    return accept(layer, input, x, columns);
  }
  /// x [tokens, kv_heads * head_dim], likewise.
  virtual Status accept_cached(uint32_t /*layer*/, CachedValue /*value*/, std::span<const float> /*x*/,
                               size_t /*columns*/) {
    return {};
  }
  /// Whether a block may stop after this input; the rest is then not computed.
  virtual bool ends_at(LinearInput) const noexcept { return false; }
  /// Whether it needs neither this input nor those before it.
  virtual bool skips(LinearInput) const noexcept { return false; }

 protected:
  ~InputSink() = default;
};

}  // namespace wasmquant::model
