// Sine and cosine in float64 from additions and multiplications, so that native and WebAssembly builds agree to the
// bit; C libraries may differ in the last one.
#pragma once
#include <cmath>
#include <cstdint>

namespace wasmquant {

/// Sine and cosine of one angle in radians.
struct SineCosine {
  double sine, cosine;
};

/// |x| <= 2^20; absolute error below 1e-14 there.
/// x = n pi/2 + r, |r| <= pi/4; pi/2 is subtracted in three parts of 33 bits, 33 bits and the rest, whose products with
/// n < 2^20 are exact. The first Taylor terms left out are r^17 / 17! and r^18 / 18!, below 1e-16.
inline SineCosine sine_cosine_of(double x) noexcept {
  constexpr double kTwoByPi = 0.63661977236758134308;
  constexpr double kHigh = 1.57079632673412561417, kMiddle = 6.07710050630396597660e-11,
                   kLow = 2.02226624879595063154e-21;
  const double n = std::floor(x * kTwoByPi + 0.5);
  const double r = ((x - n * kHigh) - n * kMiddle) - n * kLow, square = r * r;
  double sine = 1, cosine = 1;
  for (int k = 14; k >= 2; k -= 2) {
    sine = 1 - sine * square / (k * (k + 1));
    cosine = 1 - cosine * square / (k * (k - 1));
  }
  sine *= r;
  switch (static_cast<int64_t>(n) & 3) {
    case 0:
      return {sine, cosine};
    case 1:
      return {cosine, -sine};
    case 2:
      return {-sine, -cosine};
    default:
      return {-cosine, sine};
  }
}

}  // namespace wasmquant
