// Ranges chosen by how much quantization changes the distribution of the values.
#include <algorithm>
#include <cmath>
#include <limits>

#include "numeric/exponential.h"
#include "observers/statistics/histogram_range.h"

namespace wasmquant {
namespace {

// sum p log2(p / q) after smoothing: zeros of p and q become kLeast, taken evenly from the others, and both are
// normalised; infinity if the others are too small for that.
double divergence(std::span<const double> p, std::span<const double> q) noexcept {
  constexpr double kLeast = 1e-4;
  struct Smoothed {
    double taken, sum = 0;
    explicit Smoothed(std::span<const double> v) noexcept {
      size_t zeros = 0;
      for (const double count : v) {
        sum += count;
        zeros += count == 0 ? 1 : 0;
      }
      taken = zeros == v.size() ? 1 : kLeast * static_cast<double>(zeros) / static_cast<double>(v.size() - zeros);
    }
    double operator()(double count) const noexcept { return (count == 0 ? kLeast : count - taken) / sum; }
  };
  const Smoothed of_p(p), of_q(q);
  if (of_p.taken >= 1 || of_q.taken >= 1) return std::numeric_limits<double>::infinity();
  double total = 0;
  for (size_t i = 0; i < p.size(); ++i) {
    const double a = of_p(p[i]), b = of_q(q[i]);
    if (!(a > 0 && b > 0)) return std::numeric_limits<double>::infinity();
    total += a * log2_of(a / b);
  }
  return total;
}

// Value at `at` in [0, 1] of the curve through `points`, evenly spaced.
double interpolated(std::span<const double> points, double at) noexcept {
  const double position = at * static_cast<double>(points.size() - 1);
  const size_t below = std::min(static_cast<size_t>(position), points.size() - 1);
  if (below + 1 == points.size()) return points[below];
  return points[below] + (points[below + 1] - points[below]) * (position - static_cast<double>(below));
}

}  // namespace

void choose_entropy(const Histogram& h, uint32_t quantized_bins, float& min, float& max) {
  if (h.total() == 0) return;
  const size_t middle = h.bins() / 2, half = quantized_bins / 2;
  size_t best = middle;
  double least = std::numeric_limits<double>::infinity();
  std::vector<double> p, q;
  for (size_t reach = half; reach <= middle; ++reach) {
    const size_t begin = middle - reach, end = std::min(middle + reach + 1, h.bins()), length = end - begin;
    p.assign(length, 0);
    for (size_t k = 0; k < h.bins(); ++k) p[std::clamp(k, begin, end - 1) - begin] += static_cast<double>(h.counts[k]);
    const size_t merged = length / quantized_bins;
    q.assign(length, 0);
    for (size_t first = 0, i = 0; i < quantized_bins; ++i, first += merged) {
      const size_t last = first + merged;
      double sum = 0;  // without what is outside
      for (size_t k = first; k < (i + 1 == quantized_bins ? length : last); ++k)
        sum += static_cast<double>(h.counts[begin + k]);
      size_t filled = 0;
      for (size_t k = first; k < last; ++k) filled += p[k] != 0 ? 1 : 0;
      for (size_t k = first; k < last && filled != 0; ++k) q[k] = std::floor(sum / static_cast<double>(filled));
    }
    const double found = divergence(p, q);
    if (!(found < least)) continue;
    least = found;
    best = reach;
  }
  min = std::max(min, h.edge(middle - best));
  max = std::min(max, h.edge(std::min(middle + best + 1, h.bins())));
}

double kl_j_threshold(const Histogram& h, uint32_t bits) {
  const uint64_t total = h.total();
  if (total == 0) return 0;
  // The whole multiple of bins closest to numpy's sqrt(count) bins.
  const double wanted = std::max(std::ceil(std::sqrt(static_cast<double>(total))), 1.0);
  const auto merged = static_cast<size_t>(std::max(std::floor(static_cast<double>(h.bins()) / wanted + 0.5), 1.0));
  const size_t bins = (h.bins() + merged - 1) / merged, codes = size_t{1} << (bits - 1);
  const double width = h.width() * static_cast<double>(merged);
  std::vector<double> share(bins);  // of the values up to the end of each bin
  uint64_t sum = 0;
  for (size_t i = 0; i < h.bins(); ++i) {
    sum += h.counts[i];
    share[i / merged] = static_cast<double>(sum) / static_cast<double>(total);
  }
  if (codes + 1 > bins) return h.high;
  double least = std::numeric_limits<double>::infinity(), best = h.high;
  std::vector<double> cut, coarse(codes);
  for (size_t length = codes + 1; length <= bins; ++length) {
    cut.assign(share.begin(), share.begin() + static_cast<ptrdiff_t>(length));
    cut.back() = 1;
    for (size_t i = 0; i < codes; ++i)
      coarse[i] = interpolated(cut, static_cast<double>(i) / static_cast<double>(codes - 1));
    double distance = 0;
    for (size_t i = 0; i < bins; ++i) {
      if (share[i] == 0) continue;
      const double q =
          i < length ? interpolated(coarse, static_cast<double>(i) / static_cast<double>(length - 1)) : 1.0;
      distance += (share[i] - q) * log2_of(share[i] / q);
    }
    if (!(distance < least)) continue;
    least = distance;
    best = (static_cast<double>(length) + 0.5) * width;
  }
  return best;
}

}  // namespace wasmquant
