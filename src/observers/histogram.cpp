#include "observers/histogram.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/kernels.h"

namespace wasmquant {

void Histogram::open(double lowest, double highest, uint32_t bin_count) {
  low = lowest;
  high = highest > lowest ? highest : lowest + std::max(std::abs(lowest), 1.0) * bin_count * 0x1p-23;
  counts.assign(size_t{bin_count} + 1, 0);
}

size_t Histogram::bin_of(float v) const noexcept {
  const float magnitude = std::fabs(v);
  if (!(magnitude <= std::numeric_limits<float>::max()) || (skips_zeros && v == 0)) return bins();
  const double position = (static_cast<double>(of_magnitudes ? magnitude : v) - low) * bins_per_unit();
  return static_cast<size_t>(std::clamp(position, 0.0, static_cast<double>(bins() - 1)));
}

// Blocks inside the range, which pass 1 has seen to, need no clamp, and a loop of conversions takes several values at
// once. Zeros that do not count are taken out of their bin afterwards.
void Histogram::add(std::span<const float> x) noexcept {
  constexpr size_t kBlock = 512;
  int32_t bin[kBlock];
  const double scale = bins_per_unit();
  const auto last = static_cast<int32_t>(bins() - 1);
  for (size_t begin = 0; begin < x.size(); begin += kBlock) {
    const std::span<const float> block = x.subspan(begin, std::min(kBlock, x.size() - begin));
    const kernels::Extent extent = kernels::reduce_extent(block);
    const double lowest = of_magnitudes ? 0 : extent.min;
    const double highest = of_magnitudes ? std::max(-extent.min, extent.max) : extent.max;
    if (!extent.all_finite || lowest < low || highest > high) {
      for (const float v : block) ++counts[bin_of(v)];
      continue;
    }
    uint32_t zeros = 0;
    for (size_t i = 0; i < block.size(); ++i) {
      const float v = of_magnitudes ? std::fabs(block[i]) : block[i];
      const auto index = static_cast<int32_t>((static_cast<double>(v) - low) * scale);
      bin[i] = index < last ? index : last;
      zeros += v == 0 ? 1 : 0;
    }
    for (size_t i = 0; i < block.size(); ++i) ++counts[static_cast<size_t>(bin[i])];
    if (!skips_zeros || zeros == 0) continue;
    counts[static_cast<size_t>(std::min((0 - low) * scale, static_cast<double>(last)))] -= zeros;
    counts[bins()] += zeros;
  }
}

void Histogram::add(const Histogram& other) noexcept {
  for (size_t i = 0; i < counts.size() && i < other.counts.size(); ++i) counts[i] += other.counts[i];
}

uint64_t Histogram::total() const noexcept {
  uint64_t total = 0;
  for (size_t i = 0; i < bins(); ++i) total += counts[i];
  return total;
}

}  // namespace wasmquant
