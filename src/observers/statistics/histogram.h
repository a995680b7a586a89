// A histogram of equal bins over a range known in advance; counts are whole numbers, so their order does not matter.
// bin i = [low + i * width, low + (i + 1) * width), the last one closed. Source: AMD Quark, spec 4.6 (numpy.histogram).
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace wasmquant {

/// Bins and their counts.
struct Histogram {
  double low = 0, high = 0;
  bool of_magnitudes = false;  // |x| is counted
  bool skips_zeros = false;
  std::vector<uint64_t> counts;  // one per bin, and one for skipped values

  /// Empties the bins; low < high afterwards: an empty range is widened by max(|low|, 1) * bin_count * 2^-23.
  void open(double lowest, double highest, uint32_t bin_count);
  /// Values outside the range count in the bin next to them; NaN and infinity are left out.
  void add(std::span<const float> x) noexcept;
  void add(const Histogram& other) noexcept;

  uint64_t total() const noexcept;
  size_t bins() const noexcept { return counts.size() - 1; }
  double bins_per_unit() const noexcept { return static_cast<double>(bins()) / (high - low); }
  double width() const noexcept { return (high - low) / static_cast<double>(bins()); }
  /// Edge 0 is low, edge bins() is high.
  float edge(size_t index) const noexcept {
    return static_cast<float>(index == bins() ? high : low + static_cast<double>(index) * width());
  }
  float center(size_t bin) const noexcept {
    return static_cast<float>((static_cast<double>(edge(bin)) + static_cast<double>(edge(bin + 1))) / 2);
  }

 private:
  size_t bin_of_position(double v) const noexcept;
  size_t bin_of(float v) const noexcept;
};

}  // namespace wasmquant
