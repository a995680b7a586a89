#include "observers/scale_groups.h"

#include <algorithm>
#include <cmath>

#include "kernels/kernels.h"

namespace wasmquant {

ScaleGroups::ScaleGroups(const Granularity& g, std::vector<float> x)
    : values_(std::move(x)), begin_(static_cast<size_t>(g.scale_count()) + 1) {
  std::vector<uint64_t> scales;  // of each element
  if (count() != 1) {
    scales.reserve(values_.size());
    for_each_run(g, 0, values_.size(), [&](const Run& run) {
      for (uint64_t i = 0; i < run.count; ++i) scales.push_back(run.scale + i * run.scale_stride);
    });
  }
  if (kernels::find_non_finite(values_) >= 0) {
    size_t kept = 0;
    for (size_t i = 0; i < values_.size(); ++i) {
      if (!std::isfinite(values_[i])) continue;
      if (!scales.empty()) scales[kept] = scales[i];
      values_[kept++] = values_[i];
    }
    values_.resize(kept);
  }
  if (count() == 1) {
    begin_[1] = values_.size();
    return;
  }
  for (size_t i = 0; i < values_.size(); ++i) ++begin_[static_cast<size_t>(scales[i]) + 1];
  for (size_t i = 1; i < begin_.size(); ++i) begin_[i] += begin_[i - 1];
  std::vector<uint64_t> next = begin_;
  std::vector<float> sorted(values_.size());
  for (size_t i = 0; i < values_.size(); ++i)
    sorted[static_cast<size_t>(next[static_cast<size_t>(scales[i])]++)] = values_[i];
  values_ = std::move(sorted);
}

}  // namespace wasmquant
