// What an algorithm that scales columns sees of the linear layers that share an input, and what it answers: rows of
// WASMQUANT_SCALING in algorithms.def. Where the input is made it is then divided by the scales, and the layers'
// columns are multiplied by them, so that rounding changes and the model does not.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "algorithms/scaling/auto_smooth_quant.h"
#include "algorithms/scaling/awq.h"
#include "algorithms/scaling/smooth_quant.h"
#include "core/result.h"

namespace wasmquant {

/// What the inputs of the layers that share them were like.
struct SeenInput {
  std::vector<float> largest;  // [columns], max |x|
  std::vector<double> mean;    // [columns], mean |x|
  std::vector<float> gram;     // [columns, columns], 2 / tokens X^T X; where the row says that it sees it
  std::vector<float> sample;   // [some tokens, columns]; the same
  uint64_t tokens = 0;
};

struct ScaleSearch {
  const SeenInput& input;
  std::span<const float> weight_max;       // [columns], max |W_ij| of all layers
  std::span<const AwqLayer> layers;        // those that are quantized
  const SmoothQuantOptions& smooth_quant;  // `alpha` and `scale_clamp_min` of the config
  ScaleLoss loss;                          // its `compute_scale_loss`
  const QuantizationSpec* input_spec;      // what the inputs are quantized to; null: nothing
};

/// Fills scales [columns]; false: there is nothing better than ones. Errors: with an empty `where`, the layers get it.
using FindScales = Result<bool>(const ScaleSearch& search, std::span<float> scales);

}  // namespace wasmquant
