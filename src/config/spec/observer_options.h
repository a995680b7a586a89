// Options of an observer.
#pragma once
#include <cstdint>

namespace wasmquant {

/// When a voting observer (PowOf2) is queried: Quark does so after every batch, its unit tests also once at the end.
enum class Votes : uint8_t { every_batch, last_batch };

/// How a search chooses thresholds or ranges. grid: all of a number of equal steps · sections: aihwkit's
/// "golden_section" is Brent's bounded method, Brevitas 0.10.3 uses Fibonacci numbers · interval: Brevitas 0.13, both
/// ends and 18 points between them; for searches of ranges the same as grid.
enum class SearchMethod : uint8_t { grid, sections, interval };

/// Defaults are AMD Quark's.
struct ObserverOptions {
  uint32_t bins = 0;             // of a histogram; 0: the method's default
  double percentile = 0;         // in percent; 0: the method's default
  int64_t first_candidate = -3;  // bin of the first mse_last_bins candidate, negative from the end
  Votes votes = Votes::every_batch;
  double tail_percent = 0;  // last_range: what is cut off below; per_channel: also above
  double momentum = 0.9;    // moving_range: the share of the old range
  SearchMethod search = SearchMethod::sections;
  uint32_t candidates = 100;  // range searches: steps of the grid
  double range_margin = 0.5;  // range searches: added to the largest magnitude
  double norm = 0.7;          // half_quadratic: p of |x - y|^p, 0 <= p < 1
  uint32_t iterations = 20;   // half_quadratic: steps at most
  bool weighted = false;  // per_scale_mse, half_quadratic's first guess: weight squared errors by the mean square of
                          // their input channel, which calibration measures
  bool relative_margin = false;  // range_margin is a share of the largest magnitude; aihwkit's is absolute

  friend bool operator==(const ObserverOptions&, const ObserverOptions&) = default;
};

}  // namespace wasmquant
