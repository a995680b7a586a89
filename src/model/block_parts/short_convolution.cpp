// Short convolutions (LFM2): with [b | c | x] = W n of a token n, for each channel
//   y_t = c_t (bias + sum over i of w_i (b x)_(t - width + 1 + i)),   zeros before the first token
// Source: transformers, models/lfm2/modeling_lfm2.py.
#include "model/block.h"

namespace wasmquant::model {

void BlockRunner::convolve_channels(const BlockValues& weights, uint32_t layer, std::span<const uint32_t> lengths,
                                    size_t channels, std::vector<float>& out) {
  const size_t width = architecture_.convolution_width, before = (width - 1) * channels;
  const std::vector<float>&taps = weights[Slot::convolution], &bias = weights[Slot::convolution_bias];
  out.resize(tokens_ * channels);
  const float* x = q_.data();
  float* y = out.data();
  for (const size_t length : lengths) {
    k_.clear();
    if (cached_ != nullptr) k_ = cached_->inputs[layer];
    k_.resize(before);
    k_.insert(k_.end(), x, x + length * channels);
    for (size_t i = 0; i < length * channels; ++i) {
      const size_t channel = i % channels;
      float sum = bias.empty() ? 0 : bias[channel];
      for (size_t tap = 0; tap < width; ++tap) sum += taps[channel * width + tap] * k_[i + tap * channels];
      *y++ = sum;
    }
    if (cached_ != nullptr) cached_->inputs[layer].assign(k_.end() - static_cast<ptrdiff_t>(before), k_.end());
    x += length * channels;
  }
}

void BlockRunner::convolve(const BlockValues& weights, uint32_t layer, std::span<const uint32_t> lengths) {
  const size_t hidden = architecture_.hidden;
  linear(normed_, weights, Slot::q, Slot::q_bias, hidden, 3 * hidden, fused_);
  q_.resize(tokens_ * hidden);
  const auto token = [&](size_t i) { return fused_.data() + i / hidden * 3 * hidden + i % hidden; };
  for (size_t i = 0; i < q_.size(); ++i) q_[i] = token(i)[0] * token(i)[2 * hidden];
  convolve_channels(weights, layer, lengths, hidden, attended_);
  for (size_t i = 0; i < attended_.size(); ++i) attended_[i] *= token(i)[hidden];
}

}  // namespace wasmquant::model
