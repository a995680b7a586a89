// Half-quadratic quantization (Badri and Shaji, "Half-Quadratic Quantization of Large Machine Learning Models", 2023):
// the scale and zero point with the least sum of |x - y|^p, p < 1, only from the data. Alternates
//   e = shrunk (x - y): sign(d) * max(|d| - |d|^(p - 1) / beta, 0), d in units of the scale (the outliers' excess)
//   zero_point = mean of q - (x - e) / scale                        (asymmetric specs)
//   scale = <q - zero_point, x - e> / <q - zero_point, q - zero_point>
// while beta grows by kappa, until neither step helps. The paper measures in the data's unit and keeps its scales; here
// the unit of beta is the scale, so the result does not depend on the data's unit. Whole zero points are rounded.
#pragma once
#include "observers/search/per_scale_search.h"

namespace wasmquant {

/// The search over the elements of one scale.
class HalfQuadraticSearch {
 public:
  HalfQuadraticSearch(const QuantizationSpec& spec, const ObserverOptions& options, const ScaleRule& rule,
                      const AffineRule& grid_of, const SearchGroup& group) noexcept
      : spec_(spec), options_(options), rule_(rule), grid_of_(grid_of), group_(group) {}

  /// The best candidate met from either start.
  SearchCandidate operator()(SearchCandidate whole, SearchCandidate other) const;

 private:
  struct Step {
    double loss, mean_zero, scale;  // loss of the candidate; zero point and scale that are best for the shrunk errors
  };
  Step step(const QParams& candidate, double beta) const noexcept;
  bool is_asymmetric() const noexcept { return !spec_.symmetric; }
  QParams with_scale(const SearchCandidate& start, const QParams& now, double scale) const noexcept;
  QParams with_zero_point(QParams now, double zero_point) const noexcept;
  void improve(const SearchCandidate& start, SearchCandidate& best) const;

  const QuantizationSpec& spec_;
  const ObserverOptions& options_;
  const ScaleRule& rule_;
  const AffineRule& grid_of_;
  const SearchGroup& group_;
};

}  // namespace wasmquant
