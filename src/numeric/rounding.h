// The roundings of a config: scalar definitions that every kernel matches.
//   half_even: nearest, ties to even · round: floor(v + 0.5), exactly · floor: floor(v)
//   half_away: nearest, ties away from zero (what AMD Quark's GPU kernel does when told "floor")
#pragma once
#include <cmath>
#include <cstdint>

namespace wasmquant {

/// The roundings above.
enum class RoundMethod : uint8_t { half_even, round, floor, half_away };

/// v in float32; the result is a whole number (or NaN/inf as v).
inline float apply_rounding(RoundMethod method, float v) noexcept {
  switch (method) {
    case RoundMethod::half_even:
      return std::nearbyint(v);  // the default floating-point environment rounds to nearest even
    case RoundMethod::round:
      // Not floor(v + 0.5f): that sum rounds, and 0.49999997 would become 1. v - floor(v) is accurate enough.
      return std::floor(v) + (v - std::floor(v) >= 0.5f ? 1.0f : 0.0f);
    case RoundMethod::floor:
      return std::floor(v);
    case RoundMethod::half_away:
      return std::trunc(v) + (std::fabs(v - std::trunc(v)) >= 0.5f ? std::copysign(1.0f, v) : 0.0f);
  }
  return v;
}

}  // namespace wasmquant
