#include <algorithm>

#include "observers/statistics/histogram_range.h"

namespace wasmquant {

void choose_percentile(const Histogram& h, double percent, float& min, float& max) noexcept {
  const uint64_t total = h.total();
  if (total == 0) {
    min = max = 0;
    return;
  }
  const double all = static_cast<double>(total);
  if (h.of_magnitudes) {
    const float wanted = std::min(static_cast<float>(percent / 100), 1.0f);
    uint64_t sum = h.counts[0];
    size_t bin = 0;
    while (static_cast<float>(static_cast<double>(sum) / all) < wanted) sum += h.counts[++bin];
    min = 0;
    max = h.edge(bin);
    return;
  }
  const double tail = all * (100 - percent) / 100;
  size_t first = 0, last = h.bins() - 1;
  for (uint64_t left_out = h.counts[first]; first < last && static_cast<double>(left_out) <= tail;)
    left_out += h.counts[++first];
  for (uint64_t left_out = h.counts[last]; last > first && static_cast<double>(left_out) <= tail;)
    left_out += h.counts[--last];
  min = std::max(min, h.edge(first));
  max = std::min(max, h.edge(last + 1));
}

}  // namespace wasmquant
