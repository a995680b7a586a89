// Sums of non-negative numbers in fixed point. Adding is exact, so neither order nor split matters.
#pragma once
#include <cstdint>
#include <span>

namespace wasmquant {

/// A fixed-point sum.
struct ExactSum {
  static constexpr int kFractionBits = 62;
  uint64_t whole = 0;
  uint64_t fraction = 0;  // in 2^-62, below 1

  /// 0 <= v < 2^63; bits below 2^-62 are dropped.
  void add(double v) noexcept;
  void add(const ExactSum& other) noexcept {
    fraction += other.fraction;
    whole += other.whole + (fraction >> kFractionBits);
    fraction &= (uint64_t{1} << kFractionBits) - 1;
  }
  friend bool operator<(const ExactSum& a, const ExactSum& b) noexcept {
    return a.whole != b.whole ? a.whole < b.whole : a.fraction < b.fraction;
  }
};

/// Adds the sum of ((y - x) * unit)^2 to `sum`, y - x in float32, each square rounded to 2^-(42 - 2 * bits). All x are
/// finite and |y - x| * unit < 2^(bits + 0.5), as for codes of `bits` bits in units of a scale, so float64 sums are
/// exact.
void add_squared_error(std::span<const float> x, const float* y, double unit, uint32_t bits, ExactSum& sum) noexcept;

}  // namespace wasmquant
