#include "observers/statistics/pairwise_sum.h"

#include <cstddef>

namespace wasmquant {

float pairwise_sum(std::span<const float> x) noexcept {
  constexpr size_t kLanes = 8, kBlock = 128;
  if (x.size() > kBlock) {
    const size_t half = x.size() / 2 / kLanes * kLanes;
    return pairwise_sum(x.first(half)) + pairwise_sum(x.subspan(half));
  }
  const size_t whole = x.size() / kLanes * kLanes;
  float sum = 0;
  if (whole != 0) {
    float lane[kLanes];
    for (size_t k = 0; k < kLanes; ++k) lane[k] = x[k];
    for (size_t i = kLanes; i < whole; i += kLanes)
      for (size_t k = 0; k < kLanes; ++k) lane[k] += x[i + k];
    sum = ((lane[0] + lane[1]) + (lane[2] + lane[3])) + ((lane[4] + lane[5]) + (lane[6] + lane[7]));
  }
  for (size_t i = whole; i < x.size(); ++i) sum += x[i];
  return sum;
}

}  // namespace wasmquant
