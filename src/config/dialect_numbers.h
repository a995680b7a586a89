// What the configs of aihwkit and of Quark's Brevitas extension say about numbers beyond the rest of QuantizationSpec.
// "8 bits, symmetric, min-max" is another grid in each dialect; a spec carries these choices, and nothing that computes
// asks for the dialect. The defaults are Quark's. Sources: aihwkit quantization, Brevitas 0.10.3 and 0.12.1 (spec 0,
// 4.3). b: bits; the threshold is the largest magnitude, or the width of the range when asymmetric.
#pragma once
#include <cstdint>

namespace wasmquant {

/// symmetric scale = threshold / divisor
enum class ScaleDivisor : uint8_t {
  half_span,   // (qmax - qmin) / 2: 127.5 at 8 bits
  top_code,    // 2^(b-1) - 1: 127, or 2^b - 1 for data without negative values when the sign is by data
  half_codes,  // 2^(b-1): 128
};
enum class ScaleFloor : uint8_t { scale_2_23, scale_1e_8, threshold_1e_10 };
enum class RangeEstimator : uint8_t {
  observer,  // what `observer` says
  current_minmax,
  allminmax,
  running_minmax,
  MSE,
  cross_entropy,  // aihwkit, in its order (spec 1.5)
  stats,
  mse,  // Brevitas: spec 2.4, 2.7 · 2.5
};
enum class RangeSearch : uint8_t { none, grid, golden_section, fibonacci };

struct DialectNumbers {
  ScaleDivisor divisor = ScaleDivisor::half_span;
  ScaleFloor floor = ScaleFloor::scale_2_23;
  bool narrow = false;                      // without the lowest code; asymmetric: without the highest
  bool sign_by_data = false;                // symmetric: unsigned when no value is negative
  bool divides = false;                     // x / scale, not x * (1 / scale)
  bool zero_point_before_rounding = false;  // of fake quantization; codes of files always have it before
  bool zero_below_only = false;             // only the lower end of the range is forced to include 0
  bool threshold_to_pof2 = false;           // the threshold is rounded up to a power of two

  RangeEstimator estimator = RangeEstimator::observer;
  RangeSearch search = RangeSearch::none;
  uint32_t candidates = 0;  // of a grid search
  double range_margin = 0;  // added to the largest magnitude before a search; absolute
  double percentile = 0;    // 0: none
  double momentum = 0;      // of running_minmax

  friend bool operator==(const DialectNumbers&, const DialectNumbers&) = default;
};

}  // namespace wasmquant
