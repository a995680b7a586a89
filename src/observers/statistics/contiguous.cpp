#include "observers/statistics/contiguous.h"

#include <algorithm>

namespace wasmquant {
namespace {

constexpr size_t kRuns = 64;  // observed in one call, their magnitudes on the stack

}  // namespace

bool observe_contiguous(std::span<const float> x, uint64_t length, const QuantizationSpec& spec,
                        std::span<QParams> qparams) noexcept {
  const ScaleRule rule(spec);
  const auto run = static_cast<size_t>(length);
  bool finite = true;
  for (size_t first = 0; first < qparams.size(); first += kRuns) {
    const size_t count = std::min(kRuns, qparams.size() - first);
    const std::span<const float> runs = x.subspan(first * run, count * run);
    float magnitude[kRuns];
    // The symmetric formula needs only the largest magnitude, which is cheaper than both ends.
    if (rule.needs_only_magnitude() && kernels::reduce_absmax_runs(runs, run, magnitude)) {
      for (size_t i = 0; i < count; ++i) qparams[first + i] = rule(-magnitude[i], magnitude[i]);
      continue;
    }
    for (size_t i = 0; i < count; ++i) {
      const kernels::Extent extent = kernels::reduce_extent(runs.subspan(i * run, run));
      finite &= extent.all_finite;
      qparams[first + i] = rule(extent.min, extent.max);
    }
  }
  return finite;
}

}  // namespace wasmquant
