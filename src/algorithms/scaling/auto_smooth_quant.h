// AutoSmoothQuant: searches how far the activation range moves into the weights, with both of them quantized.
//   s_j = max(max |x_j|^r, 1e-4) / sqrt(max s * min s),  r = 0, 0.1, ... 0.9: the r whose Q(x / s) Q(W s)^T is closest
//   to x W^T
// Source: AMD Quark (spec 7.3), after G. Xiao et al., "SmoothQuant", 2022, and AWQ's search (awq.h).
#pragma once
#include <cstdint>
#include <span>

#include "algorithms/scaling/awq.h"
#include "config/spec/spec.h"
#include "core/result.h"

namespace wasmquant {

/// Candidates of r.
inline constexpr size_t kAutoSmoothSteps = 10;

/// Quark's compute_scale_loss: mean of squares, mean of magnitudes, root of the mean of squares.
enum class ScaleLoss : uint8_t { mse, mae, rmse };

/// The best candidate for the layers' outputs on x [tokens, columns], the first of equals; `scales` [columns] gets it;
/// AwqChoice::step counts in twentieths, as in AWQ. `largest` [columns]: max |x_j| of all inputs. `input_spec`: what x
/// is quantized to, per token if it is per_channel along axis 1 (of [sequences, tokens, features]); null: x is not
/// quantized. Errors: shape-mismatch; value-not-finite (no loss is finite); those of awq_scales and quantize_scaled.
Result<AwqChoice> search_smooth_scales(std::span<const float> x, std::span<const float> largest,
                                       std::span<const AwqLayer> layers, const QuantizationSpec* input_spec,
                                       ScaleLoss loss, std::span<float> scales);

}  // namespace wasmquant
