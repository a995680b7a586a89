#include "observers/range_observer.h"

#include <algorithm>
#include <cassert>
#include <limits>

namespace wasmquant {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<float> unseen(const Granularity& g, float value) {
  return std::vector<float>(static_cast<size_t>(g.scale_count()), value);
}

}  // namespace

RangeObserver::RangeObserver(const Granularity& granularity, const QuantizationSpec& spec)
    : granularity_(granularity),
      spec_(spec),
      min_(unseen(granularity, kInfinity)),
      max_(unseen(granularity, -kInfinity)) {}

void RangeObserver::reset() noexcept {
  std::fill(min_.begin(), min_.end(), kInfinity);
  std::fill(max_.begin(), max_.end(), -kInfinity);
}

int64_t RangeObserver::update(std::span<const float> x, uint64_t begin) noexcept {
  int64_t found = -1;
  for_each_run(granularity_, begin, begin + x.size(), [&](const Run& run) {
    const auto at = static_cast<size_t>(run.begin - begin), count = static_cast<size_t>(run.count);
    const auto scale = static_cast<size_t>(run.scale);
    const std::span<const float> values = x.subspan(at, count);
    bool all_finite;
    if (run.scale_stride == 0) {
      const kernels::Extent extent = kernels::reduce_extent(values);
      min_[scale] = std::min(min_[scale], extent.min);
      max_[scale] = std::max(max_[scale], extent.max);
      all_finite = extent.all_finite;
    } else {
      all_finite = kernels::accumulate_extent(values, &min_[scale], &max_[scale]);
    }
    if (!all_finite && found < 0) found = static_cast<int64_t>(run.begin) + kernels::find_non_finite(values);
  });
  return found;
}

void RangeObserver::merge(const RangeObserver& other) noexcept { merge(other.min_, other.max_); }

void RangeObserver::merge(std::span<const float> min, std::span<const float> max) noexcept {
  assert(min.size() == min_.size() && max.size() == max_.size());
  for (size_t i = 0; i < min_.size(); ++i) {
    min_[i] = std::min(min_[i], min[i]);
    max_[i] = std::max(max_[i], max[i]);
  }
}

std::vector<QParams> RangeObserver::finish() const {
  std::vector<QParams> qparams(min_.size());
  qparams_of_ranges(min_, max_, spec_, qparams);
  return qparams;
}

}  // namespace wasmquant
