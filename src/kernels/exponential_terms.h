// Constants of exponential.cpp and its oracle.
#pragma once
#include <array>

namespace wasmquant::kernels {

/// The arguments for which exp is a normal number.
inline constexpr float kLeastExponent = -87.0f, kLargestExponent = 88.0f;
inline constexpr float kInverseLn2 = 1.44269504f;
/// 1.5 * 2^23: adding it leaves the nearest whole number in the low mantissa bits.
inline constexpr float kShifter = 12582912.0f;
/// ln 2 in two terms; the first has 16 bits, so its product with n <= 127 is exact.
inline constexpr float kLn2High = 0.693145752f, kLn2Low = 1.42860682e-6f;
/// 1/7!, ..., 1/1!, 1
inline constexpr std::array<float, 8> kExpTerms = {1.0f / 5040, 1.0f / 720, 1.0f / 120, 1.0f / 24,
                                                   1.0f / 6,    0.5f,       1.0f,       1.0f};

/// erf(x) = 1 - t (a1 + a2 t + ... + a5 t^4) exp(-x^2),  t = 1 / (1 + slope x),  x >= 0; terms a5 first.
inline constexpr float kErfSlope = 0.3275911f;
inline constexpr std::array<float, 5> kErfTerms = {1.061405429f, -1.453152027f, 1.421413741f, -0.284496736f,
                                                   0.254829592f};
inline constexpr float kInverseSqrt2 = 0.70710678f;

/// (1 + tanh u) / 2 = 1 / (1 + exp(-2 u)); the slope is 2 sqrt(2 / pi).
inline constexpr float kGeluSlope = 1.59576912f, kGeluCubic = 0.044715f;

}  // namespace wasmquant::kernels
