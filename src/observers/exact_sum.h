// A sum of non-negative numbers in fixed point: adding is exact, so the order of the terms and the split among workers
// do not matter.
#pragma once
#include <cmath>
#include <cstdint>

namespace wasmquant {

struct ExactSum {
  static constexpr int kFractionBits = 62;
  uint64_t whole = 0;
  uint64_t fraction = 0;  // in 2^-62, below 1

  /// 0 <= v; bits below 2^-62 are dropped, values above 2^40 count as that.
  void add(double v) noexcept {
    v = std::fmin(v, 0x1p40);
    const double floor = std::floor(v);
    add(ExactSum{static_cast<uint64_t>(floor), static_cast<uint64_t>((v - floor) * 0x1p62)});
  }
  void add(const ExactSum& other) noexcept {
    fraction += other.fraction;
    whole += other.whole + (fraction >> kFractionBits);
    fraction &= (uint64_t{1} << kFractionBits) - 1;
  }
  friend bool operator<(const ExactSum& a, const ExactSum& b) noexcept {
    return a.whole != b.whole ? a.whole < b.whole : a.fraction < b.fraction;
  }
};

}  // namespace wasmquant
