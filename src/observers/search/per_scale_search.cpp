// Candidates of each method and the error of one; the kernel serves the common specs.
#include "observers/search/per_scale_search.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/search.h"
#include "numeric/exponential.h"
#include "observers/search/half_quadratic_search.h"
#include "quantize/quantize.h"

namespace wasmquant {
namespace {

constexpr size_t kPiece = 1024;             // elements whose errors are summed in float32
constexpr int kShares = 112, kWhole = 100;  // ranges up to 1.12 of the data's
constexpr int kSharesOfOneEnd = 48;
constexpr int kMostRefits = 30;
constexpr double kSurely = 0.999;  // of a loss: more than the error of float32 sums
constexpr float kLargest = std::numeric_limits<float>::max();

// Whether codes and values match fake_quantize_int with half_even rounding and whole zero points.
bool fits_kernel(const QuantizationSpec& spec) noexcept {
  const bool is_mx = spec.scale_format == ScaleFormat::e8m0;
  const bool has_whole_zero = spec.symmetric || spec.zero_point_type == ZeroPointType::int32;
  return info_of(spec.dtype).is_integer && !is_mx && has_whole_zero && !spec.grid.divides && code_bits_of(spec) <= 16 &&
         spec.round_method == RoundMethod::half_even;
}

// Moves `end` towards or away from `anchor`.
float share_of(float end, float anchor, float share) noexcept {
  return std::clamp(anchor + (end - anchor) * share, -kLargest, kLargest);
}

// The exponent that scales a positive number to [1, 2), clamped so that 2^e and 2^-e are normal numbers.
int exponent_of(float v) noexcept { return v > 0 ? std::clamp(std::ilogb(v), -126, 126) : 0; }

// The value of a code.
float grid_end(const kernels::Affine& grid, float code) noexcept { return (code - grid.zero_point) * grid.scale; }

}  // namespace

void SearchGroup::take(std::span<const float> x, const float* weights) {
  const kernels::Extent extent = kernels::reduce_extent(x);
  min_ = extent.min;
  max_ = extent.max;
  const int exponent = min_ <= max_ ? exponent_of(std::max(-min_, max_)) : 0;
  unit_ = static_cast<float>(power_of_two(-exponent));
  inverse_unit_ = static_cast<float>(power_of_two(exponent));
  const float largest_weight = weights != nullptr ? *std::max_element(weights, weights + x.size()) : 0;
  const auto weight_unit = static_cast<float>(power_of_two(-exponent_of(largest_weight)));
  values_.resize(x.size());
  weights_.resize(largest_weight > 0 ? x.size() : 0);
  size_t count = 0;
  if (extent.all_finite) {
    count = x.size();
    for (size_t i = 0; i < count; ++i) values_[i] = x[i] * unit_;
    for (size_t i = 0; i < weights_.size(); ++i) weights_[i] = weights[i] * weight_unit;
  } else {
    for (size_t i = 0; i < x.size(); ++i) {
      if (!std::isfinite(x[i])) continue;
      values_[count] = x[i] * unit_;
      if (largest_weight > 0) weights_[count] = weights[i] * weight_unit;
      ++count;
    }
  }
  values_.resize(count);
  if (largest_weight > 0) weights_.resize(count);
  weight_of_max_ = weight_of_min_ = 1;
  for (size_t i = 0; i < weights_.size(); ++i) {
    if (values_[i] == max_ * unit_) weight_of_max_ = weights_[i];
    if (values_[i] == min_ * unit_) weight_of_min_ = weights_[i];
  }
}

PerScaleSearch::PerScaleSearch(const QuantizationSpec& spec, ObserverMethod method, const ObserverOptions& options,
                               float second_scale) noexcept
    : spec_(spec),
      method_(method),
      options_(options),
      rule_(spec, second_scale),
      grid_of_(spec),
      has_kernel_(fits_kernel(spec)),
      has_nested_grids_(has_kernel_ && spec.symmetric && spec.scale_format == ScaleFormat::float32) {}

double PerScaleSearch::error_of(const QParams& candidate) {
  Granularity g;
  g.inner = original_.size();
  if (spec_.zero_point_type == ZeroPointType::float32) {  // codes exist on the real path only
    quantize(g, spec_, {&candidate, 1}, kernels::Path::real, original_, 0, codes_.data());
    dequantize(g, spec_, {&candidate, 1}, codes_.data(), original_.size(), 0, quantized_.data());
  } else {
    fake_quantize(g, spec_, {&candidate, 1}, original_, 0, quantized_.data());
  }
  double sum = 0;
  for (size_t i = 0; i < original_.size(); ++i) {
    const double difference = static_cast<double>(original_[i]) - static_cast<double>(quantized_[i]);
    sum += difference * difference * (group_.weights() != nullptr ? static_cast<double>(group_.weights()[i]) : 1.0);
  }
  return sum;
}

void PerScaleSearch::measure(std::span<const QParams> candidates, double* errors) {
  if (!has_kernel_) {
    for (size_t i = 0; i < candidates.size(); ++i) errors[i] = error_of(candidates[i]);
    return;
  }
  float scale[kMostCandidates], inverse[kMostCandidates], low[kMostCandidates], high[kMostCandidates],
      error[kMostCandidates];
  for (size_t i = 0; i < candidates.size(); ++i) {
    const kernels::Affine grid = grid_of_(candidates[i]);
    scale[i] = grid.scale * group_.unit();
    inverse[i] = grid.inverse * group_.inverse_unit();
    low[i] = grid.quant_min - grid.zero_point;
    high[i] = grid.quant_max - grid.zero_point;
    errors[i] = 0;
  }
  const std::span<const float> x = group_.values();
  for (size_t at = 0; at < x.size(); at += kPiece) {
    kernels::search_errors(x.subspan(at, std::min(kPiece, x.size() - at)),
                           group_.weights() != nullptr ? group_.weights() + at : nullptr,
                           {scale, inverse, low, high, candidates.size()}, error);
    for (size_t i = 0; i < candidates.size(); ++i) errors[i] += static_cast<double>(error[i]);
  }
}

double PerScaleSearch::least_loss(const Ends& range) const noexcept {
  const kernels::Affine grid = grid_of_(rule_(range.min, range.max));
  const double ends[] = {grid_end(grid, grid.quant_min), grid_end(grid, grid.quant_max)};
  const double above = std::max(0.0, group_.max() - std::max(ends[0], ends[1])) * group_.unit();
  const double below = std::max(0.0, std::min(ends[0], ends[1]) - group_.min()) * group_.unit();
  return above * above * group_.weight_of_max() + below * below * group_.weight_of_min();
}

void PerScaleSearch::attempt(std::span<const Ends> ranges, SearchCandidate& best, double* errors) {
  constexpr size_t kStep = kernels::SearchGrids::kStep;
  QParams candidates[kStep];
  // From the widest on, so that ties keep the widest; until the largest elements lose too much, where those that follow
  // cannot lose less.
  for (size_t end = ranges.size(), begin; end > 0; end = begin) {
    begin = end - kStep;
    if (has_nested_grids_ && least_loss(ranges[end - 1]) * kSurely > best.loss) return;
    for (size_t i = 0; i < kStep; ++i) candidates[i] = rule_(ranges[begin + i].min, ranges[begin + i].max);
    measure({candidates, kStep}, errors + begin);
    for (size_t i = end; i-- > begin;)
      if (errors[i] < best.loss) best = {candidates[i - begin], ranges[i].min, ranges[i].max, errors[i]};
  }
}

SearchCandidate PerScaleSearch::least_error() {
  SearchCandidate whole = whole_range();
  // If zero has no code, ranges shrink to the end nearest to it.
  const float anchor = spec_.zero_point_type == ZeroPointType::float32 && !spec_.symmetric
                           ? std::clamp(0.0f, whole.min, whole.max)
                           : 0.0f;
  Ends ranges[kShares];
  for (int k = 1; k <= kShares; ++k) {
    const float share = static_cast<float>(k) / static_cast<float>(kWhole);
    ranges[k - 1] = {share_of(whole.min, anchor, share), share_of(whole.max, anchor, share)};
  }
  ranges[kWhole - 1] = {whole.min, whole.max};  // exact
  double errors[kMostCandidates];
  SearchCandidate best = whole;
  best.loss = std::numeric_limits<double>::infinity();
  attempt(ranges, best, errors);
  whole.loss = errors[kWhole - 1];
  if (spec_.scale_sign != ScaleSign::positive) {
    // The other sign: the extreme's magnitude at the other end.
    const float reach = std::max(-whole.min, whole.max);
    for (int k = 1; k <= kShares; ++k) {
      const float end = share_of(reach, 0, static_cast<float>(k) / static_cast<float>(kWhole));
      ranges[k - 1] = whole.max > -whole.min ? Ends{-end, 0} : Ends{0, end};
    }
    attempt(ranges, best, errors);
  }
  if (!spec_.symmetric && info_of(spec_.dtype).is_integer) {
    for (const bool is_low : {true, false}) {
      const Ends joint{best.min, best.max};
      for (int k = 1; k <= kSharesOfOneEnd; ++k) {
        const float share = static_cast<float>(k * kShares) / static_cast<float>(kSharesOfOneEnd * kWhole);
        ranges[k - 1] = joint;
        (is_low ? ranges[k - 1].min : ranges[k - 1].max) = share_of(is_low ? whole.min : whole.max, anchor, share);
      }
      attempt({ranges, kSharesOfOneEnd}, best, errors);
    }
  }
  return best.loss < whole.loss * kLeastGain ? best : whole;
}

SearchCandidate PerScaleSearch::mx_diffs() {
  QuantizationSpec ceiled = spec_;
  ceiled.scale_format = ScaleFormat::e8m0;
  ceiled.scale_calculation_mode = ScaleCalculationMode::ceil;
  SearchCandidate best = whole_range();
  best.qparams = qparams_of(best.min, best.max, ceiled);
  best.loss = error_of(best.qparams);
  const QParams half{std::max(best.qparams.scale / 2, 0x1p-127f), 0.0f};
  const double error = error_of(half);
  return error < best.loss ? SearchCandidate{half, best.min, best.max, error} : best;
}

SearchCandidate PerScaleSearch::refit(SearchCandidate start) const {
  SearchCandidate best = start;
  QParams now = start.qparams;
  for (int turn = 0; turn <= kMostRefits; ++turn) {
    const kernels::Affine grid = grid_of_(now);
    const kernels::LeastSquaresSums sums =
        kernels::least_squares(group_.values(), group_.weights(),
                               {grid.scale * group_.unit(), grid.inverse * group_.inverse_unit(),
                                grid.quant_min - grid.zero_point, grid.quant_max - grid.zero_point});
    if (turn == 0)
      best.loss = start.loss = sums.loss;
    else if (sums.loss < best.loss)
      best = {now, std::min(grid_end(grid, grid.quant_min), grid_end(grid, grid.quant_max)),
              std::max(grid_end(grid, grid.quant_min), grid_end(grid, grid.quant_max)), sums.loss};
    else
      break;
    const double scale = sums.squares > 0 ? sums.cross / sums.squares * static_cast<double>(group_.inverse_unit()) : 0;
    if (!(scale * static_cast<double>(std::copysign(1.0f, now.scale)) > 0)) break;
    const float stored = std::copysign(rule_.stored(static_cast<float>(std::fabs(scale))), now.scale);
    if (stored == now.scale) break;
    now.scale = stored;
  }
  return best.loss < start.loss * kLeastGain ? best : start;
}

SearchCandidate PerScaleSearch::least_power(const SearchCandidate& start) {
  SearchCandidate best = start;
  best.loss = error_of(best.qparams);
  for (const float factor : {0.5f, 2.0f}) {
    const float before = best.qparams.scale;
    for (;;) {
      const QParams next{std::clamp(best.qparams.scale * factor, 0x1p-127f, 0x1p127f), 0.0f};
      const double loss = error_of(next);
      if (!(loss < best.loss * kLeastGain)) break;
      best = {next, start.min, start.max, loss};
    }
    if (best.qparams.scale != before) break;
  }
  return best;
}

SearchCandidate PerScaleSearch::operator()(std::span<const float> x, const float* weights) {
  group_.take(x, weights);
  if (group_.empty()) return {};
  if (info_of(spec_.dtype).is_block()) return whole_range();
  if (!has_kernel_) {
    original_.clear();
    for (const float v : x)
      if (std::isfinite(v)) original_.push_back(v);
    quantized_.resize(original_.size());
    codes_.resize(original_.size() * code_bytes_of(spec_));
  }
  if (method_ == ObserverMethod::mx_diffs) return mx_diffs();
  const bool is_range = method_ == ObserverMethod::min_max || method_ == ObserverMethod::block_max;
  const SearchCandidate best = is_range ? whole_range() : least_error();
  if (spec_.scale_refit) return spec_.scale_format == ScaleFormat::e8m0 ? least_power(best) : refit(best);
  if (method_ == ObserverMethod::per_scale_mse) return best;
  return HalfQuadraticSearch(spec_, options_, rule_, grid_of_, group_)(whole_range(), best);
}

}  // namespace wasmquant
