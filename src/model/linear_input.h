// The inputs of a transformer's linear layers, which calibration observes.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/result.h"

namespace wasmquant::model {

/// One matrix may feed several layers: q, k and v read `attention`, gate and up read `feed_forward`.
enum class LinearInput : uint8_t { attention, attention_output, feed_forward, feed_forward_output, head };
inline constexpr size_t kBlockInputs = 4;  // all but `head`

/// Receives the inputs of linear layers.
class InputSink {
 public:
  /// x [tokens, columns], tokens in order; called once per portion of the batch. `layer`: the block. An error ends the
  /// run.
  virtual Status accept(uint32_t layer, LinearInput input, std::span<const float> x, size_t columns) = 0;
  /// Whether a block may stop after this input; the rest is then not computed.
  virtual bool ends_at(LinearInput) const noexcept { return false; }
  /// Whether it needs neither this input nor those before it.
  virtual bool skips(LinearInput) const noexcept { return false; }

 protected:
  ~InputSink() = default;
};

}  // namespace wasmquant::model
