#include "algorithms/scaling/equalization.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/message.h"
#include "kernels/kernels.h"
#include "observers/statistics/order_statistics.h"

namespace wasmquant {
namespace {

constexpr float kNegligible = 1e-9f;

// The divisor of a bias when it counts as a weight.
float bias_divisor(const EqualizedSource& source, size_t channels) {
  const size_t columns = source.weight.size() / channels;
  float max_bias = 0, max_weight = 0;
  double sum = 0;
  std::vector<float> ratios(source.weight.size());
  for (size_t i = 0; i < ratios.size(); ++i) {
    const float bias = std::fabs(source.bias[i / columns]), weight = std::max(std::fabs(source.weight[i]), kNegligible);
    max_bias = std::max(max_bias, bias);
    max_weight = std::max(max_weight, weight);
    ratios[i] = bias / weight;
    sum += ratios[i];
  }
  const double mean = sum / static_cast<double>(ratios.size());
  const float median = value_of_rank(ratios, (ratios.size() - 1) / 2);
  if (max_bias < 10 && max_bias / max_weight < 20) return median > 100 || mean > 1000 ? 5.0f : 2.0f;
  if (median > 30 || mean > 500) return 20;
  return median > 15 || mean > 250 ? 10.0f : 5.0f;
}

// r1 and r2 of each channel.
void find_ranges(const EqualizedRegion& region, bool merge_bias, std::vector<float>& made, std::vector<float>& read) {
  made.assign(region.channels, 0.0f);
  read.assign(region.channels, 0.0f);
  for (const EqualizedSource& source : region.sources) {
    const size_t columns = source.weight.size() / region.channels;
    const bool has_bias = merge_bias && !source.bias.empty() && columns != 0;
    const float smallest = has_bias ? kNegligible : 0.0f,
                divisor = has_bias ? bias_divisor(source, region.channels) : 1.0f;
    for (size_t c = 0; c < region.channels; ++c) {
      for (size_t i = 0; i < columns; ++i)
        made[c] = std::max({made[c], std::fabs(source.weight[c * columns + i]), smallest});
      if (has_bias) made[c] = std::max(made[c], std::fabs(source.bias[c]) / divisor);
    }
  }
  for (const EqualizedSink& sink : region.sinks)
    for (size_t i = 0; i < sink.weight.size(); ++i) {
      float& range = read[i / sink.inner % region.channels];
      range = std::max(range, std::fabs(sink.weight[i]));
    }
}

// Returns max |1 - s|.
float equalize_region(EqualizedRegion& region, bool merge_bias) {
  std::vector<float> scales, read;
  find_ranges(region, merge_bias, scales, read);
  float largest = 0;
  for (size_t c = 0; c < region.channels; ++c) {
    const bool is_negligible = scales[c] <= kNegligible || read[c] <= kNegligible;
    scales[c] = is_negligible ? 1.0f : std::sqrt(scales[c]) / std::sqrt(read[c]);
    largest = std::max(largest, std::fabs(1 - scales[c]));
  }
  for (EqualizedSource& source : region.sources) {
    const size_t columns = source.weight.size() / region.channels;
    for (size_t i = 0; i < source.weight.size(); ++i) source.weight[i] /= scales[i / columns];
    for (size_t c = 0; c < source.bias.size(); ++c) source.bias[c] /= scales[c];
  }
  for (EqualizedSink& sink : region.sinks)
    for (size_t i = 0; i < sink.weight.size(); ++i) sink.weight[i] *= scales[i / sink.inner % region.channels];
  return largest;
}

Status check(const EqualizedRegion& region) {
  const size_t n = region.channels;
  const auto fits = [n](size_t size, size_t inner) { return n != 0 && inner != 0 && size % (n * inner) == 0; };
  const auto check_finite = [](std::span<const float> values) -> Status {
    if (const int64_t at = kernels::find_non_finite(values); at >= 0)
      return error_at(ErrorCode::value_not_finite, "", "element {} of a weight or bias is NaN or infinite", at);
    return {};
  };
  for (const EqualizedSource& source : region.sources) {
    if (!fits(source.weight.size(), 1) || (!source.bias.empty() && source.bias.size() != n))
      return error_at(ErrorCode::shape_mismatch, "", "a weight of {} elements and a bias of {} do not fit {} channels",
                      source.weight.size(), source.bias.size(), n);
    TRY_VOID(check_finite(source.weight));
    TRY_VOID(check_finite(source.bias));
  }
  for (const EqualizedSink& sink : region.sinks) {
    if (!fits(sink.weight.size(), sink.inner))
      return error_at(ErrorCode::shape_mismatch, "", "a weight of {} elements does not fit {} input channels",
                      sink.weight.size(), n);
    TRY_VOID(check_finite(sink.weight));
  }
  return {};
}

}  // namespace

Status equalize(std::span<EqualizedRegion> regions, const EqualizationOptions& options) {
  for (const EqualizedRegion& region : regions) TRY_VOID(check(region));
  for (uint32_t i = 0; i < options.iterations; ++i) {
    float largest = 0;
    for (EqualizedRegion& region : regions) largest = std::max(largest, equalize_region(region, options.merge_bias));
    if (largest < options.threshold) break;
  }
  return {};
}

}  // namespace wasmquant
