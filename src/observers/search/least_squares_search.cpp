#include <algorithm>
#include <cmath>
#include <limits>

#include "observers/statistics/histogram_range.h"

namespace wasmquant {
namespace {

// Integral of density * x^2 from `from` to `to`.
double squares_between(double from, double to, double density) noexcept {
  return density * ((to * to * to - from * from * from) / 3);
}

// Squared error if bins first..last are divided among `codes` codes and values outside get the nearest one.
double error_of(const Histogram& h, size_t first, size_t last, double codes) noexcept {
  const double width = h.width(), step = width * static_cast<double>(last - first + 1) / codes;
  if (step == 0) return 0;
  double error = 0;
  for (size_t bin = 0; bin < h.bins(); ++bin) {
    if (h.counts[bin] == 0) continue;
    const double density = static_cast<double>(h.counts[bin]) / width;
    const double begin = (static_cast<double>(bin) - static_cast<double>(first)) * width, end = begin + width;
    const double code_of_begin = std::clamp(std::floor(begin / step), 0.0, codes - 1);
    const double code_of_end = std::clamp(std::floor(end / step), 0.0, codes - 1);
    // From the bin's start to the end of its code, whole codes, from the start of the last code to the end.
    error += squares_between(begin - (code_of_begin + 0.5) * step, step / 2, density);
    error += (code_of_end - code_of_begin - 1) * squares_between(-step / 2, step / 2, density);
    error += squares_between(-step / 2, end - (code_of_end + 0.5) * step, density);
  }
  return error;
}

}  // namespace

void choose_least_squares(const Histogram& h, uint32_t bits, float& min, float& max) noexcept {
  constexpr double kStep = 1e-5;  // share of the values that one move leaves out
  const uint64_t count = h.total();
  if (count == 0 || !(min < max)) return;
  const double total = static_cast<double>(count), codes = static_cast<double>(uint64_t{1} << bits);
  size_t first = 0, last = h.bins() - 1;
  uint64_t up_to_first = h.counts[0], up_to_last = count;  // values in the bins 0..first, 0..last
  double least = std::numeric_limits<double>::infinity();
  for (double alpha = 0, beta = 1; alpha < beta;) {
    size_t left = first, right = last;
    uint64_t up_to_left = up_to_first, up_to_right = up_to_last;
    while (left < last && static_cast<double>(up_to_left) < (alpha + kStep) * total) up_to_left += h.counts[++left];
    while (right > first && static_cast<double>(up_to_right) > (beta - kStep) * total) up_to_right -= h.counts[right--];
    const bool moves_left = left - first > last - right;
    (moves_left ? alpha += kStep : beta -= kStep);
    if (moves_left ? left == first : right == last) continue;
    const size_t next_first = moves_left ? left : first, next_last = moves_left ? last : right;
    const double error = error_of(h, next_first, next_last, codes);
    if (error > least) break;
    least = error;
    if (moves_left) {
      first = left;
      up_to_first = up_to_left;
    } else {
      last = right;
      up_to_last = up_to_right;
    }
  }
  min = h.edge(first);
  max = h.edge(last + 1);
}

}  // namespace wasmquant
