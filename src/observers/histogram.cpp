#include "observers/histogram.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace wasmquant {

void Histogram::open(double lowest, double highest, uint32_t bins) {
  low = lowest;
  high = highest > lowest ? highest : lowest + std::max(std::abs(lowest), 1.0) * bins * 0x1p-23;
  counts.assign(bins, 0);
}

void Histogram::add(std::span<const float> x) noexcept {
  const double last = static_cast<double>(counts.size() - 1);
  const double scale = static_cast<double>(counts.size()) / (high - low);
  for (const float v : x) {
    const float magnitude = std::fabs(v);
    if (!(magnitude <= std::numeric_limits<float>::max()) || (skips_zeros && v == 0)) continue;
    const double position = (static_cast<double>(of_magnitudes ? magnitude : v) - low) * scale;
    ++counts[static_cast<uint32_t>(std::clamp(position, 0.0, last))];
  }
}

void Histogram::add(const Histogram& other) noexcept {
  for (size_t i = 0; i < counts.size() && i < other.counts.size(); ++i) counts[i] += other.counts[i];
}

uint64_t Histogram::total() const noexcept {
  uint64_t total = 0;
  for (const uint64_t count : counts) total += count;
  return total;
}

}  // namespace wasmquant
