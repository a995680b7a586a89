// Brevitas' search of the threshold with the least squared error (aihwkit-brevitas 2.5).
#pragma once
#include <span>

#include "config/spec/spec.h"

namespace wasmquant {

/// What a scale divides: the largest magnitude (low is 0), or the length of a range and its lower end.
struct Threshold {
  float length = 0, low = 0;
};

/// The elements of one scale. `from` is the start of the search and its upper end; `low`: lower end for lengths.
///   grid      i t/20 for i = 2..20, the first of the best (0.12.1)
///   interval  t/20, then t/20 + i/19 of the way to t for i = 1..19, the first of the best (0.13)
///   sections  Fibonacci search on [t/20, t], 19 rounds (0.10.3)
/// Then, for asymmetric specs, the lower end: by interval from l up to l/20, else by grid.
Threshold search_threshold(std::span<const float> x, const QuantizationSpec& spec, const Threshold& from, float low,
                           SearchMethod method);

}  // namespace wasmquant
