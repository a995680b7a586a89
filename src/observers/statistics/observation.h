#pragma once
#include <vector>

#include "config/spec/spec.h"
#include "quantize/granularity.h"
#include "quantize/qparams.h"

namespace wasmquant {

/// The result of an observer, in internal scale order.
struct Observation {
  Granularity granularity;        // of the last batch
  QuantizationSpec spec;          // the observer's spec for this data (spec_for_data)
  std::vector<QParams> qparams;   // before the first batch: one scale 1, zero point 0
  std::vector<float> min, max;    // chosen range of each scale; min > max where nothing was seen
  float second_scale = 1;         // of scale_format e4m3, with which the scales were chosen
  std::vector<float> candidates;  // MSE methods: upper ends that were tried,
  std::vector<float> errors;      // and their mean squared errors
};

}  // namespace wasmquant
