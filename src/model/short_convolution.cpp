// Short convolutions (LFM2): with [b | c | x] = W n of a token n, for each channel
//   y_t = c_t (bias + sum over i of w_i (b x)_(t - width + 1 + i)),   zeros before the first token
// Source: transformers, models/lfm2/modeling_lfm2.py.
#include "model/block.h"

namespace wasmquant::model {

void BlockRunner::convolve(const BlockValues& weights, uint32_t layer, std::span<const uint32_t> lengths) {
  const size_t hidden = architecture_.hidden, width = architecture_.convolution_width, before = (width - 1) * hidden;
  const std::vector<float>&taps = weights[Slot::convolution], &bias = weights[Slot::convolution_bias];
  linear(normed_, weights, Slot::q, Slot::q_bias, hidden, 3 * hidden, fused_);
  attended_.resize(tokens_ * hidden);
  const float* from = fused_.data();
  float* y = attended_.data();
  for (const uint32_t length : lengths) {
    k_.clear();
    if (cached_ != nullptr) k_ = cached_->keys[layer];
    k_.resize(before);
    for (size_t i = 0; i < length * hidden; ++i) {
      const float* const token = from + i / hidden * 3 * hidden + i % hidden;
      k_.push_back(token[0] * token[2 * hidden]);
    }
    for (size_t i = 0; i < length * hidden; ++i) {
      const size_t channel = i % hidden;
      float sum = bias.empty() ? 0 : bias[channel];
      for (size_t tap = 0; tap < width; ++tap) sum += taps[channel * width + tap] * k_[i + tap * hidden];
      *y++ = from[i / hidden * 3 * hidden + hidden + channel] * sum;
    }
    from += length * 3 * hidden;
    if (cached_ != nullptr) cached_->keys[layer].assign(k_.end() - static_cast<ptrdiff_t>(before), k_.end());
  }
}

}  // namespace wasmquant::model
