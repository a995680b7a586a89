// Squared error of fake quantization estimated from a histogram: every value counts as the centre of its bin.
#include <algorithm>
#include <limits>

#include "observers/statistics/histogram_range.h"
#include "quantize/quantize.h"

namespace wasmquant {
namespace {

constexpr uint32_t kCandidates = 256;

class HistogramError {
 public:
  HistogramError(const Histogram& h, const QuantizationSpec& spec) : histogram_(h), spec_(spec) {
    granularity_.inner = h.bins();
    centers_.resize(h.bins());
    quantized_.resize(h.bins());
    for (size_t i = 0; i < h.bins(); ++i) centers_[i] = h.center(i);
  }

  std::span<const float> centers() const noexcept { return centers_; }

  // Sum over all values.
  double of(float min, float max) noexcept {
    const QParams qparams = qparams_of(min, max, spec_);
    fake_quantize(granularity_, spec_, {&qparams, 1}, centers_, 0, quantized_.data());
    double sum = 0;
    for (size_t i = 0; i < centers_.size(); ++i) {
      const double difference = static_cast<double>(quantized_[i]) - static_cast<double>(centers_[i]);
      sum += difference * difference * static_cast<double>(histogram_.counts[i]);
    }
    return sum;
  }

 private:
  const Histogram& histogram_;
  const QuantizationSpec& spec_;
  Granularity granularity_;
  std::vector<float> centers_, quantized_;
};

float part_of(float end, uint32_t candidate) noexcept {
  return static_cast<float>(static_cast<double>(end) * (candidate / static_cast<double>(kCandidates)));
}

}  // namespace

void choose_least_error(const Histogram& h, const QuantizationSpec& spec, Observation& observation) {
  const uint64_t total = h.total();
  if (total == 0) return;
  HistogramError error(h, spec);
  const float widest_min = observation.min[0], widest_max = observation.max[0];
  float &min = observation.min[0], &max = observation.max[0];
  double least = std::numeric_limits<double>::infinity();
  const auto attempt = [&](float low, float high) {
    const double found = error.of(low, high);
    if (found < least) {
      least = found;
      min = low;
      max = high;
    }
    return found;
  };
  const float reach = h.of_magnitudes ? std::max(-widest_min, widest_max) : 0;
  for (uint32_t k = kCandidates; k > 0; --k) {
    const float limit = part_of(reach, k);
    const float low = h.of_magnitudes ? std::max(widest_min, -limit) : part_of(widest_min, k);
    const float high = h.of_magnitudes ? std::min(widest_max, limit) : part_of(widest_max, k);
    observation.errors.push_back(static_cast<float>(attempt(low, high) / static_cast<double>(total)));
    observation.candidates.push_back(high);
  }
  if (h.of_magnitudes || spec.symmetric) return;
  const float joint_max = max;
  for (uint32_t k = kCandidates; k > 0; --k) attempt(part_of(widest_min, k), joint_max);
  const float best_min = min;
  for (uint32_t k = kCandidates; k > 0; --k) attempt(best_min, part_of(widest_max, k));
}

void choose_last_bins(const Histogram& h, const QuantizationSpec& spec, int64_t first, Observation& observation) {
  const auto bins = static_cast<int64_t>(h.bins());
  HistogramError error(h, spec);
  double least = std::numeric_limits<double>::infinity();
  observation.min[0] = 0;
  for (int64_t bin = std::clamp<int64_t>(first < 0 ? first + bins : first, 0, bins - 1); bin < bins; ++bin) {
    const float candidate = error.centers()[static_cast<size_t>(bin)];
    const double found = error.of(0, candidate) / static_cast<double>(bins);
    observation.candidates.push_back(candidate);
    observation.errors.push_back(static_cast<float>(found));
    if (!(found < least)) continue;
    least = found;
    observation.max[0] = candidate;
  }
}

}  // namespace wasmquant
