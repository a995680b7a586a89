#include "model/steps/rotary.h"

#include <algorithm>
#include <cmath>

#include "numeric/exponential.h"
#include "numeric/sine.h"

namespace wasmquant::model {
namespace {

constexpr double kTwoPi = 6.28318530717958647693;

/// The pair, not whole, whose angle makes so many rotations over the original positions.
double pair_of(const Rope& rope, double rotations, size_t dimensions) noexcept {
  return static_cast<double>(dimensions) * log2_of(rope.original_positions / (rotations * kTwoPi)) /
         (2 * log2_of(rope.theta));
}

/// The share of the stretched frequency in YaRN's (B. Peng et al. 2023, "NTK-by-parts").
double yarn_share(const Rope& rope, size_t pair, size_t dimensions) noexcept {
  double low = pair_of(rope, rope.fast_rotations, dimensions), high = pair_of(rope, rope.slow_rotations, dimensions);
  if (rope.is_truncated) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, static_cast<double>(dimensions - 1));
  if (low == high) high += 0.001;
  return std::clamp((static_cast<double>(pair) - low) / (high - low), 0.0, 1.0);
}

/// Llama 3.1: periods up to original / high_factor stay, those from original / low_factor on are stretched, those between are blended.
double llama3_share(const Rope& rope, double plain) noexcept {
  const double rotations = rope.original_positions * plain / kTwoPi;
  return std::clamp(1 - (rotations - rope.low_factor) / (rope.high_factor - rope.low_factor), 0.0, 1.0);
}

/// 1 / theta^(2 pair / dimensions) with RoPE scaling applied.
float frequency_of(const Rope& rope, size_t pair, size_t dimensions, bool is_long) noexcept {
  const double exponent = static_cast<double>(2 * pair) / static_cast<double>(dimensions);
  const double plain = exp2_of(-exponent * log2_of(rope.theta)), stretched = plain / rope.factor;
  double share = 0;
  switch (rope.scaling) {
    case Rope::Scaling::none:
      break;
    case Rope::Scaling::linear:
      share = 1;
      break;
    case Rope::Scaling::llama3:
      share = llama3_share(rope, plain);
      break;
    case Rope::Scaling::yarn:
      share = yarn_share(rope, pair, dimensions);
      break;
    case Rope::Scaling::proportional:
      return pair < static_cast<size_t>(rope.share * static_cast<double>(dimensions) / 2)
                 ? static_cast<float>(stretched)
                 : 0;
    case Rope::Scaling::longrope:
      return static_cast<float>(plain / double{(is_long ? rope.long_factors : rope.short_factors)[pair]});
  }
  if (share == 0) return static_cast<float>(plain);
  if (share == 1) return static_cast<float>(stretched);
  return static_cast<float>(share * stretched + (1 - share) * plain);
}

}  // namespace

std::vector<float> rotary_frequencies(const Rope& rope, uint32_t head_dim, bool is_long) {
  const size_t pairs = rope.dimensions(head_dim) / 2;
  std::vector<float> frequencies(pairs);
  for (size_t pair = 0; pair < pairs; ++pair) frequencies[pair] = frequency_of(rope, pair, 2 * pairs, is_long);
  return frequencies;
}

RotaryTable::RotaryTable(const Rope& rope, uint32_t head_dim, size_t positions, bool is_long)
    : half_(rope.dimensions(head_dim) / 2),
      is_pairs_(rope.is_pairs),
      cosine_(positions * half_),
      sine_(positions * half_) {
  const std::vector<float> frequencies = rotary_frequencies(rope, head_dim, is_long);
  for (size_t pair = 0; pair < half_; ++pair) {
    const float frequency = frequencies[pair];
    for (size_t position = 0; position < positions; ++position) {
      const float angle = static_cast<float>(position) * frequency;
      const SineCosine rotated = sine_cosine_of(static_cast<double>(angle));
      cosine_[position * half_ + pair] = static_cast<float>(rotated.cosine * rope.amplitude);
      sine_[position * half_ + pair] = static_cast<float>(rotated.sine * rope.amplitude);
    }
  }
}

void RotaryTable::apply(float* x, size_t position) const noexcept {
  const float* const cosine = cosine_.data() + position * half_;
  const float* const sine = sine_.data() + position * half_;
  const size_t stride = is_pairs_ ? 2 : 1, distance = is_pairs_ ? 1 : half_;
  for (size_t i = 0; i < half_; ++i) {
    float &low = x[i * stride], &high = x[i * stride + distance];
    const float before = low;
    low = before * cosine[i] - high * sine[i];
    high = high * cosine[i] + before * sine[i];
  }
}

}  // namespace wasmquant::model
