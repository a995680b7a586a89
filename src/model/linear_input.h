// What calibration observes in a transformer: the inputs of its linear layers, and the keys and values of attention.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/result.h"

namespace wasmquant::model {

/// One matrix may feed several layers: q, k and v read `attention`, gate and up read `feed_forward`.
enum class LinearInput : uint8_t { attention, attention_output, feed_forward, feed_forward_output, head };
inline constexpr size_t kBlockInputs = 4;  // all but `head`

/// Keys and values: the outputs of k_proj and v_proj, and the keys as attention reads them, after their norm and RoPE.
enum class CachedValue : uint8_t { projected_key, key, value };

/// Receives the inputs of linear layers, and keys and values.
class InputSink {
 public:
  /// x [tokens, columns], tokens in order; called once per portion of the batch. `layer`: the block. An error ends the
  /// run.
  virtual Status accept(uint32_t layer, LinearInput input, std::span<const float> x, size_t columns) = 0;
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
