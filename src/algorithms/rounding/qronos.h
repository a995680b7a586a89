// Qronos: before GPTQ's loop, the weights compensate for the effect of earlier layers' errors on the inputs. With x the
// inputs of the float network, x' those of the quantized one, H = sum x' x'^T + damping, D = sum (x - x') x'^T and
// c = w D, a row w is quantized so that x' reproduces w x. First the first column is corrected, then the others as if
// it were fixed, and the loop spreads the remaining rounding error:
//   d_1 = c_1 / H_11,   (d_2 ... d_n) = H_(2..n)^-1 (c_(2..n) - H_(2..n),1 d_1),   w <- w + d
// Equal inputs need no correction. Damping is alpha times H's largest eigenvalue. The inverse's factor is computed
// without the inverse (linear_algebra.h), so `beta`, which upstream scales that inverse by, has no effect.
// Source: S. Zhang et al., "Qronos: Correcting the Past by Shaping the Future in Post-Training Quantization", 2025; AMD
// Quark's defaults (spec 7.6).
#pragma once
#include <span>

#include "algorithms/rounding/error_feedback.h"

namespace wasmquant {

/// Quark's default of alpha.
inline constexpr double kQronosAlpha = 1e-3;

/// The largest eigenvalue of a positive semidefinite matrix [n, n], by 30 power iterations from ones.
double largest_eigenvalue(std::span<const float> matrix, size_t n);

/// Adds d to each row of weight [rows, columns], columns in the layer's order. `drift`: D [columns, columns] from
/// input_drift, with the factor of the feedback's Hessian. Error: shape-mismatch.
Status correct_for_drift(const ErrorFeedback& feedback, std::span<const float> drift, std::span<float> weight);

}  // namespace wasmquant
