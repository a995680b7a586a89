#include "observers/statistics/exact_sum.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace wasmquant {

void ExactSum::add(double v) noexcept {
  const double floor = std::floor(v);
  add(ExactSum{static_cast<uint64_t>(floor), static_cast<uint64_t>((v - floor) * 0x1p62)});
}

// A square below 2^(2 * bits + 1), rounded to f = 42 - 2 * bits binary places, is a whole number of at most 43 bits;
// 512 of them need 52, and float64 has 53. Rounding: adding 1.5 * 2^(52 - f) leaves f places.
void add_squared_error(std::span<const float> x, const float* y, double unit, uint32_t bits, ExactSum& sum) noexcept {
  constexpr size_t kBlock = 512, kLanes = 4;
  constexpr double kLargestBlock = 0x1p43;  // beyond all dtypes; out-of-range values must not overflow the sum
  const double magic = 1.5 * std::bit_cast<double>(static_cast<uint64_t>(10 + 2 * bits + 1023) << 52);
  for (size_t begin = 0; begin < x.size(); begin += kBlock) {
    const size_t count = std::min(kBlock, x.size() - begin), whole_lanes = count - count % kLanes;
    const float *from = x.data() + begin, *to = y + begin;
    double lane[kLanes] = {};
    for (size_t i = 0; i < whole_lanes; i += kLanes)
      for (size_t k = 0; k < kLanes; ++k) {
        const double error = static_cast<double>(to[i + k] - from[i + k]) * unit;
        lane[k] += (error * error + magic) - magic;
      }
    for (size_t i = whole_lanes; i < count; ++i) {
      const double error = static_cast<double>(to[i] - from[i]) * unit;
      lane[0] += (error * error + magic) - magic;
    }
    const double total = (lane[0] + lane[1]) + (lane[2] + lane[3]);
    sum.add(total < kLargestBlock ? total : kLargestBlock);
  }
}

}  // namespace wasmquant
