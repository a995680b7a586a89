// Searches the scale and zero point of elements that share them.
//   per_scale_mse       the range with the least squared error: the ends of the data times k / 100, k = 1..112, both alike;
//                   then, for asymmetric specs, each end separately, in 48 steps; for signed scales, each of those
//                   magnitudes with the other sign. Elements may have weights.
//   mx_diffs        MX: 2^(ceil(log2 amax) - emax) or half of it, the one with the smaller squared error (AMD Quark's
//                   PerBlockMXDiffs, spec 4.11)
//   half_quadratic  the least sum of |x - y|^p, p < 1, which outliers affect less; half_quadratic_search.h
//   min_max, block_max  none: the range of the data, for specs with scale_refit
// scale_refit then fits the scale to the codes that it gives, and the codes to the scale, in turns:
//   q = round_half_even(x / s), clamped to the codes less the zero point;   s = sum(w q x) / sum(w q^2), as it is stored
// until the weighted squared error falls no more. Source: S. Lloyd, "Least squares quantization in PCM", 1982, with levels that
// are multiples of s. An e8m0 scale is halved, or else doubled, as long as that error falls.
// By its measure, none is worse than the range of the data: a gain counts only if it exceeds the rounding of the sums.
#pragma once
#include <span>
#include <vector>

#include "config/spec/spec.h"
#include "quantize/qparams.h"

namespace wasmquant {

/// Scale and zero point, their range, and the loss that the search minimises.
struct SearchCandidate {
  QParams qparams{1.0f, 0.0f};
  float min = 1, max = 0;  // min > max where there was no finite element
  double loss = 0;
};

/// A loss must fall below this share of the whole range's loss; float32 sums are less accurate than that.
inline constexpr double kLeastGain = 1 - 0x1p-16;

/// The elements of one scale, laid out for repeated passes.
class SearchGroup {
 public:
  /// Skips non-finite elements. `weights`: null, or one per element, finite and >= 0; all zero counts as none.
  void take(std::span<const float> x, const float* weights);

  bool empty() const noexcept { return values_.empty(); }
  float min() const noexcept { return min_; }
  float max() const noexcept { return max_; }
  /// The elements times unit(), a power of two that scales the largest magnitude to [1, 2) if float32 allows: squares
  /// neither overflow nor vanish.
  std::span<const float> values() const noexcept { return values_; }
  float unit() const noexcept { return unit_; }
  float inverse_unit() const noexcept { return inverse_unit_; }
  /// Null, or one per element, below 2.
  const float* weights() const noexcept { return weights_.empty() ? nullptr : weights_.data(); }
  /// Of an element that is max() and of one that is min(); 1 without weights.
  float weight_of_max() const noexcept { return weight_of_max_; }
  float weight_of_min() const noexcept { return weight_of_min_; }

 private:
  std::vector<float> values_, weights_;
  float min_ = 0, max_ = 0, unit_ = 1, inverse_unit_ = 1, weight_of_max_ = 1, weight_of_min_ = 1;
};

/// One search method for one spec.
class PerScaleSearch {
 public:
  /// `method` is one of the above. `second_scale` as for ScaleRule; `spec` is that for the data (spec_for_data).
  PerScaleSearch(const QuantizationSpec& spec, ObserverMethod method, const ObserverOptions& options,
                 float second_scale = 1.0f) noexcept;

  /// The elements of one scale, as for SearchGroup::take.
  SearchCandidate operator()(std::span<const float> x, const float* weights);

 private:
  struct Ends {
    float min, max;
  };
  static constexpr size_t kMostCandidates = 112;

  SearchCandidate whole_range() const noexcept {
    return {rule_(group_.min(), group_.max()), group_.min(), group_.max()};
  }
  SearchCandidate least_error();
  SearchCandidate mx_diffs();
  // Improves the scale of `start`; its range is that of its grid then. Requires has_kernel_.
  SearchCandidate refit(SearchCandidate start) const;
  // The same for e8m0 scales.
  SearchCandidate least_power(const SearchCandidate& start);
  // What the largest elements beyond the grid of a range lose, in the unit of measure(). Requires has_nested_grids_.
  double least_loss(const Ends& range) const noexcept;
  // Keeps the best of `best` and `ranges`, of which each is within the next: at most kMostCandidates, a multiple of
  // SearchGrids::kStep. `errors`: of those that were measured, the widest at least.
  void attempt(std::span<const Ends> ranges, SearchCandidate& best, double* errors);
  // Squared errors, in a unit that all candidates share.
  void measure(std::span<const QParams> candidates, double* errors);
  double error_of(const QParams& candidate);

  QuantizationSpec spec_;
  ObserverMethod method_;
  ObserverOptions options_;
  ScaleRule rule_;
  AffineRule grid_of_;
  bool has_kernel_;  // whether kernels::search_errors supports the spec
  // Whether a narrower range has a grid inside that of a wider one: rounded zero points and scales of few bits move grids.
  bool has_nested_grids_;
  SearchGroup group_;
  std::vector<float> original_, quantized_;  // without the kernel
  std::vector<uint8_t> codes_;
};

}  // namespace wasmquant
