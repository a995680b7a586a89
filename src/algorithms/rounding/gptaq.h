// GPTAQ: GPTQ whose columns also compensate for changed inputs. With x the inputs of the float network, x' those from
// already quantized layers, and U from the Hessian of x' (error_feedback.h), a column whose weight was w_i when it was
// quantized adds to the later columns
//   w_j += w_i P_ij,   P = alpha striu(D U^T) U,   D = 2/N sum (x - x') x'^T,   striu: strictly upper triangle
// Source: Y. Li et al., "GPTAQ: Efficient Finetuning-Free Quantization for Asymmetric Calibration", 2025; AMD Quark's
// alpha (spec 7.5).
#pragma once
#include <span>
#include <vector>

#include "algorithms/rounding/error_feedback.h"
#include "algorithms/rounding/gpfq.h"

namespace wasmquant {

/// Quark's default of alpha.
inline constexpr double kGptaqAlpha = 0.25;

/// D [columns, columns] times `factor`; the inputs must be finished.
std::vector<float> input_drift(const GpfqInputs& inputs, double factor);

/// Fills feedback.drift. `drift` is D in the layer's column order, with the factor of its Hessian.
void add_drift(ErrorFeedback& feedback, std::span<const float> drift, double alpha = kGptaqAlpha);

}  // namespace wasmquant
