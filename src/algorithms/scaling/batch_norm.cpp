#include "algorithms/scaling/batch_norm.h"

#include <cmath>

#include "core/message.h"

namespace wasmquant {
namespace {

float factor_of(const BatchNorm& norm, size_t channel) noexcept {
  const float root = std::sqrt(norm.variance[channel] + static_cast<float>(norm.epsilon));
  return (norm.weight.empty() ? 1.0f : norm.weight[channel]) / root;
}

}  // namespace

Status fold_batch_norm(const BatchNorm& norm, std::span<float> weight, std::span<float> bias) {
  const size_t channels = bias.size();
  const auto fits = [channels](std::span<const float> values) { return values.empty() || values.size() == channels; };
  if (channels == 0 || weight.size() % channels != 0 || norm.mean.size() != channels ||
      norm.variance.size() != channels || !fits(norm.weight) || !fits(norm.offset))
    return error_at(ErrorCode::shape_mismatch, "", "a norm of {} channels does not fit {} weights and {} biases",
                    norm.mean.size(), weight.size(), channels);
  for (size_t c = 0; c < channels; ++c) {
    const float sum = factor_of(norm, c) + norm.mean[c] + (norm.offset.empty() ? 0.0f : norm.offset[c]);
    if (!std::isfinite(sum))
      return error_at(ErrorCode::value_not_finite, "", "channel {} of the norm is NaN, infinite or without variance",
                      c);
  }
  const size_t columns = weight.size() / channels;
  for (size_t c = 0; c < channels; ++c) {
    const float factor = factor_of(norm, c);
    for (size_t i = c * columns; i < (c + 1) * columns; ++i) weight[i] *= factor;
    bias[c] = bias[c] * factor + (norm.offset.empty() ? 0.0f : norm.offset[c]) - norm.mean[c] * factor;
  }
  return {};
}

}  // namespace wasmquant
