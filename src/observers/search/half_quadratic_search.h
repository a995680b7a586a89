// Half-quadratic quantization (Badri and Shaji, "Half-Quadratic Quantization of Large Machine Learning Models", 2023):
// scale and zero point with the least sum of |x - y|^p, p < 1, from the data alone. In turn
//   e = shrunk (x - y): sign(d) * max(|d| - |d|^(p - 1) / beta, 0), d in units of the scale: what outliers are beyond
//   zero_point = mean of q - (x - e) / scale                        (asymmetric specs)
//   scale = <q - zero_point, x - e> / <q - zero_point, q - zero_point>
// beta grows by kappa, until neither step helps any more. The paper's data has its own unit and its scales stay; here
// the unit of beta is the scale, so that the result does not depend on the data's. Whole zero points are rounded, and
// the scale that follows makes up for it.
#pragma once
#include "observers/search/per_scale_search.h"

namespace wasmquant {

class HalfQuadraticSearch {
 public:
  HalfQuadraticSearch(const QuantizationSpec& spec, const ObserverOptions& options, const ScaleRule& rule,
                      const AffineRule& grid_of, const SearchSlice& slice) noexcept
      : spec_(spec), options_(options), rule_(rule), grid_of_(grid_of), slice_(slice) {}

  /// The best of what is met from both starts on.
  SearchCandidate operator()(SearchCandidate whole, SearchCandidate other) const;

 private:
  struct Step {
    double loss, mean_zero, scale;  // of the candidate; the zero point and scale that are best for the shrunk errors
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
  const SearchSlice& slice_;
};

}  // namespace wasmquant
