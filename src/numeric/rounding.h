// The three roundings of a config, as scalar definitions that every kernel answers to.
//   half_even: nearest, ties to even · round: floor(v + 0.5), exactly · floor: floor(v)
#pragma once
#include <cmath>
#include <cstdint>

namespace wasmquant {

enum class RoundMethod : uint8_t { half_even, round, floor };

/// v in float32; the result is a whole number (or NaN/inf as v).
inline float apply_rounding(RoundMethod method, float v) noexcept {
  switch (method) {
    case RoundMethod::half_even:
      return std::nearbyint(v);  // the default floating-point environment rounds to nearest even
    case RoundMethod::round:
      // Not floor(v + 0.5f): that sum rounds, and 0.49999997 would become 1. The fraction v - floor(v) loses nothing
      // that matters.
      return std::floor(v) + (v - std::floor(v) >= 0.5f ? 1.0f : 0.0f);
    case RoundMethod::floor:
      return std::floor(v);
  }
  return v;
}

}  // namespace wasmquant
