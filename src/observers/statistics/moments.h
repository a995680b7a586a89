// Sums of values and of their squares, exact (exact_sum.h): the order of the terms does not matter.
#pragma once
#include <span>

#include "observers/statistics/exact_sum.h"

namespace wasmquant {

/// Sums over many values.
struct Moments {
  ExactSum positive, negative;  // sums of max(v, 0) and max(-v, 0), each term rounded to 2^-42
  ExactSum squares;
  uint64_t count = 0;

  /// v = x * unit, |v| <= 1. Non-finite values are skipped.
  void add(std::span<const float> x, double unit) noexcept;
  void add(const Moments& other) noexcept;

  double mean() const noexcept { return (value_of(positive) - value_of(negative)) / size(); }
  double mean_magnitude() const noexcept { return (value_of(positive) + value_of(negative)) / size(); }
  /// Population standard deviation.
  double standard_deviation() const noexcept;

 private:
  static double value_of(const ExactSum& sum) noexcept {
    return static_cast<double>(sum.whole) + static_cast<double>(sum.fraction) * 0x1p-62;
  }
  double size() const noexcept { return count == 0 ? 1 : static_cast<double>(count); }
};

}  // namespace wasmquant
