#include "observers/statistics/histogram.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/search.h"

namespace wasmquant {

void Histogram::open(double lowest, double highest, uint32_t bin_count) {
  low = lowest;
  high = highest > lowest ? highest : lowest + std::max(std::abs(lowest), 1.0) * bin_count * 0x1p-23;
  counts.assign(size_t{bin_count} + 1, 0);
}

size_t Histogram::bin_of_position(double v) const noexcept {
  return static_cast<size_t>(std::clamp((v - low) * bins_per_unit(), 0.0, static_cast<double>(bins() - 1)));
}

size_t Histogram::bin_of(float v) const noexcept {
  const float magnitude = std::fabs(v);
  if (!(magnitude <= std::numeric_limits<float>::max()) || (skips_zeros && v == 0)) return bins();
  return bin_of_position(of_magnitudes ? magnitude : v);
}

// Neighbours often fall into one bin, and incrementing the same counter twice stalls: long spans alternate between
// several tables. Zeros that do not count are subtracted afterwards.
void Histogram::add(std::span<const float> x) noexcept {
  constexpr size_t kBlock = 512, kTables = 4, kMostBins = 4352, kLongPiece = 16384;
  uint32_t bin[kBlock], table[kTables][kMostBins];
  const kernels::Bins rule{low, bins_per_unit(), static_cast<uint32_t>(bins() - 1), of_magnitudes};
  const bool has_tables = x.size() >= kLongPiece && bins() <= kMostBins;
  if (has_tables)
    for (auto& counts_of : table) std::fill(counts_of, counts_of + bins(), 0);
  for (size_t begin = 0; begin < x.size(); begin += kBlock) {
    const std::span<const float> block = x.subspan(begin, std::min(kBlock, x.size() - begin));
    const kernels::Binned found = kernels::find_bins(block, rule, bin);
    if (!found.all_finite) {
      for (const float v : block) ++counts[bin_of(v)];
      continue;
    }
    size_t i = 0;
    for (; has_tables && i + kTables <= block.size(); i += kTables)
      for (size_t k = 0; k < kTables; ++k) ++table[k][bin[i + k]];
    for (; i < block.size(); ++i) ++counts[bin[i]];
    if (!skips_zeros || found.zeros == 0) continue;
    counts[bin_of_position(0)] -= found.zeros;
    counts[bins()] += found.zeros;
  }
  for (size_t i = 0; has_tables && i < bins(); ++i)
    for (const auto& counts_of : table) counts[i] += counts_of[i];
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
