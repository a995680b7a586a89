// Input and output of an algorithm that scales the columns of linear layers with a common input: rows of
// WASMQUANT_SCALING in algorithms.def. The producer of the input is then divided by the scales and the layers' columns
// are multiplied by them, which changes rounding but not the model.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "algorithms/scaling/auto_smooth_quant.h"
#include "algorithms/scaling/awq.h"
#include "algorithms/scaling/smooth_quant.h"
#include "core/result.h"

namespace wasmquant {

/// Statistics of the inputs of layers that share them.
struct SeenInput {
  std::vector<float> largest;  // [columns], max |x|
  std::vector<double> mean;    // [columns], mean |x|
  std::vector<float> hessian;  // [columns, columns], 2 / tokens X^T X; only if the row requests it
  std::vector<float>
      held_out;  // [columns, columns], the same of a quarter of the tokens, which the hessian has, too; only
                 // for a choice between roundings
  std::vector<float> sample;  // [some tokens, columns]; likewise
  uint64_t tokens = 0, held_out_tokens = 0;
};

/// The arguments of FindScales.
struct ScaleSearch {
  const SeenInput& input;
  std::span<const float> weight_max;       // [columns], max |W_ij| of all layers
  std::span<const AwqLayer> layers;        // the quantized ones
  const SmoothQuantOptions& smooth_quant;  // `alpha` and `scale_clamp_min` of the config
  ScaleLoss loss;                          // its `compute_scale_loss`
  const QuantizationSpec* input_spec;      // what the inputs are quantized to; null: not quantized
};

/// Fills scales [columns]; false: nothing is better than ones. Errors have an empty `where`, which the caller fills.
using FindScales = Result<bool>(const ScaleSearch& search, std::span<float> scales);

}  // namespace wasmquant
