// log2 and exp2 in float64 from additions, multiplications and divisions, so that native and WebAssembly builds agree
// to the bit; C libraries may differ in the last one.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace wasmquant {

inline constexpr double kLn2 = 0.69314718055994530942;

/// x > 0, finite. Exact for powers of two.
/// x = m 2^e with m in [sqrt(1/2), sqrt(2));  ln m = 2 atanh(t) = 2 (t + t^3/3 + t^5/5 + ...),  t = (m - 1) / (m + 1).
/// |t| <= 0.172: the first term left out, t^23 / 23, is below 2e-19.
inline double log2_of(double x) noexcept {
  constexpr double kSqrt2 = 1.41421356237309504880;
  constexpr int kBias = 1023, kMantissaBits = 52;
  int e = -kBias;
  if (x < std::numeric_limits<double>::min()) {  // subnormal
    x *= 0x1p54;
    e -= 54;
  }
  const auto bits = std::bit_cast<uint64_t>(x);
  e += static_cast<int>(bits >> kMantissaBits);
  double m = std::bit_cast<double>((bits & ((uint64_t{1} << kMantissaBits) - 1)) | uint64_t{kBias} << kMantissaBits);
  if (m >= kSqrt2) {
    m /= 2;
    ++e;
  }
  const double t = (m - 1) / (m + 1), square = t * t;
  double series = 1.0 / 21;
  for (int k = 19; k >= 1; k -= 2) series = series * square + 1.0 / k;
  return e + 2 * t * series / kLn2;
}

/// Results below 2^-1021 are 0, from 2^1024 on infinity. Exact for whole numbers.
/// 2^y = 2^n exp(z), n the nearest whole number, |z| <= ln(2) / 2: the first term left out, z^15 / 15!, is below 1e-19.
inline double exp2_of(double y) noexcept {
  constexpr int kBias = 1023, kMantissaBits = 52;
  if (y >= kBias + 1) return std::numeric_limits<double>::infinity();
  if (y < -kBias + 2) return 0;
  const double n = std::floor(y + 0.5), z = (y - n) * kLn2;
  double series = 1;
  for (int k = 14; k >= 1; --k) series = 1 + series * z / k;
  // n may be 1024, one beyond the largest exponent.
  return series * 2 *
         std::bit_cast<double>(static_cast<uint64_t>(static_cast<int64_t>(n) + kBias - 1) << kMantissaBits);
}

/// 1 / (1 + exp(-x)).
inline float sigmoid_of(float x) noexcept { return static_cast<float>(1 / (1 + exp2_of(-double{x} / kLn2))); }

}  // namespace wasmquant
