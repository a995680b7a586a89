#include "model/rotary.h"

#include "numeric/exponential.h"
#include "numeric/sine.h"

namespace wasmquant::model {
namespace {

constexpr double kTwoPi = 6.28318530717958647693;

/// 1 / theta^(2 pair / head_dim) with RoPE scaling applied. llama3 (Llama 3.1): periods up to original / high_factor
/// stay, those from original / low_factor on are scaled, and those between are blended.
float frequency_of(const Rope& rope, size_t pair, size_t head_dim) noexcept {
  const double exponent = static_cast<double>(2 * pair) / static_cast<double>(head_dim);
  const double plain = exp2_of(-exponent * log2_of(rope.theta)), stretched = plain / rope.factor;
  switch (rope.scaling) {
    case Rope::Scaling::none:
      return static_cast<float>(plain);
    case Rope::Scaling::linear:
      return static_cast<float>(stretched);
    case Rope::Scaling::llama3:
      break;
  }
  const double rotations = rope.original_positions * plain / kTwoPi;
  const double share = (rotations - rope.low_factor) / (rope.high_factor - rope.low_factor);
  if (rotations < rope.low_factor) return static_cast<float>(stretched);
  if (rotations > rope.high_factor) return static_cast<float>(plain);
  return static_cast<float>((1 - share) * stretched + share * plain);
}

}  // namespace

RotaryTable::RotaryTable(const Rope& rope, size_t head_dim, size_t positions)
    : half_(head_dim / 2), cosine_(positions * half_), sine_(positions * half_) {
  for (size_t pair = 0; pair < half_; ++pair) {
    const float frequency = frequency_of(rope, pair, head_dim);
    for (size_t position = 0; position < positions; ++position) {
      const float angle = static_cast<float>(position) * frequency;
      const SineCosine rotated = sine_cosine_of(static_cast<double>(angle));
      cosine_[position * half_ + pair] = static_cast<float>(rotated.cosine);
      sine_[position * half_ + pair] = static_cast<float>(rotated.sine);
    }
  }
}

void RotaryTable::apply(float* x, size_t position) const noexcept {
  const float* const cosine = cosine_.data() + position * half_;
  const float* const sine = sine_.data() + position * half_;
  for (size_t i = 0; i < half_; ++i) {
    const float low = x[i], high = x[i + half_];
    x[i] = low * cosine[i] - high * sine[i];
    x[i + half_] = high * cosine[i] + low * sine[i];
  }
}

}  // namespace wasmquant::model
