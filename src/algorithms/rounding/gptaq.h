// GPTAQ: GPTQ whose columns also make up for the inputs having changed. With x the inputs of the float network, x'
// those that come from layers that are quantized already, and U of the Hessian of x' (error_feedback.h), a column's
// weight that was w_i when its turn came adds to the columns after it
//   w_j += w_i P_ij,   P = alpha striu(D U^T) U,   D = 2/N sum (x - x') x'^T,   striu: what is above the diagonal
// Source: Y. Li et al., "GPTAQ: Efficient Finetuning-Free Quantization for Asymmetric Calibration", 2025; AMD Quark's
// alpha (spec 7.5).
#pragma once
#include <span>
#include <vector>

#include "algorithms/rounding/error_feedback.h"
#include "algorithms/rounding/gpfq.h"

namespace wasmquant {

inline constexpr double kGptaqAlpha = 0.25;

/// D [columns, columns] times `factor`, of inputs that are finished.
std::vector<float> input_drift(const GpfqInputs& inputs, double factor);

/// Fills feedback.drift. `drift` is D, of the feedback's columns in the layer's order, with the factor of its Hessian.
void add_drift(ErrorFeedback& feedback, std::span<const float> drift, double alpha = kGptaqAlpha);

}  // namespace wasmquant
