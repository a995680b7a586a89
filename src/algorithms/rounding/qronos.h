// Qronos: before GPTQ's loop, the weights take up what earlier layers' errors have done to the inputs. With x the
// inputs of the float network, x' those of the quantized one, H = sum x' x'^T + damping, D = sum (x - x') x'^T and c =
// w D, a row w is to be quantized so that w x is met from x'. Its first column is corrected for itself, the others as
// if that one stayed, and the loop spreads what rounding it leaves:
//   d_1 = c_1 / H_11,   (d_2 ... d_n) = H_(2..n)^-1 (c_(2..n) - H_(2..n),1 d_1),   w <- w + d
// Equal inputs ask for no change. Damping is alpha times H's largest eigenvalue. The inverse's factor is found without
// the inverse (linear_algebra.h), so that `beta`, which upstream scales that inverse by, changes no number.
// Source: S. Zhang et al., "Qronos: Correcting the Past by Shaping the Future in Post-Training Quantization", 2025; AMD
// Quark's defaults (spec 7.6).
#pragma once
#include <span>

#include "algorithms/rounding/error_feedback.h"

namespace wasmquant {

inline constexpr double kQronosAlpha = 1e-3;

/// The largest eigenvalue of a symmetric matrix [n, n] without negative ones, by 30 power iterations from ones.
double largest_eigenvalue(std::span<const float> matrix, size_t n);

/// Adds d to each row of weight [rows, columns], columns in the layer's order. `drift`: D with the factor of the
/// Hessian that the feedback is of, [columns, columns], as input_drift gives it. Error: shape-mismatch.
Status correct_for_drift(const ErrorFeedback& feedback, std::span<const float> drift, std::span<float> weight);

}  // namespace wasmquant
