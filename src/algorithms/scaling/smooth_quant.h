// SmoothQuant: moves the range of activations into the weights that read them. Each input feature j of a set of linear
// layers is divided by s_j at its producer, and the layers' columns j are multiplied by s_j.
//   s_j = max(a_j^alpha / w_j^(1 - alpha), scale_clamp_min),  a_j = max |x_j|,  w_j = max(max |W_ij|, weight_clamp_min)
// Source: G. Xiao et al., "SmoothQuant", 2022, equation 4; AMD Quark's clamps (spec 7.1). Brevitas (aihwkit-brevitas 3)
// has no clamps and skips features that need no balancing: {alpha, 0, 0, 1e-9}.
#pragma once
#include <cstdint>
#include <span>

#include "core/result.h"

namespace wasmquant {

/// Field names and defaults are Quark's.
struct SmoothQuantOptions {
  double alpha = 1.0;  // 0: only the weights' range moves; 1: all of the activations' range moves
  double scale_clamp_min = 1e-3;
  double weight_clamp_min = 1e-5;
  double negligible = -1;  // s_j = 1 where a_j or max |W_ij| is not above this
};

/// max[j] = max(max[j], |x_ij|) over the rows of x [*, max.size()]: weights of several layers, tiles of one, or
/// activations. Errors, with `max` unchanged: shape-mismatch (not whole rows), value-not-finite (row and column).
Status accumulate_column_absmax(std::span<const float> x, std::span<float> max);

/// scales[j] from a_j and max_i |W_ij| over all rows of all layers, computed in float64; all three have the same
/// length. Errors: shape-mismatch, value-not-finite (names the feature; also for a scale that overflows float32).
Status smooth_scales(std::span<const float> activation_max, std::span<const float> weight_max,
                     const SmoothQuantOptions& options, std::span<float> scales);

/// Grouped-query attention, v_proj -> o_proj: `repeats` consecutive heads of o read each of v's kv_heads heads. All
/// repeats of scales [kv_heads, repeats, head_size] become their maximum, and head_scales [kv_heads, head_size] gets it
/// once. Error: shape-mismatch.
Status share_head_scales(std::span<float> scales, size_t repeats, size_t head_size, std::span<float> head_scales);

/// Consumers: W[:, j] *= s_j, for rows of a weight [*, scales.size()].
void scale_columns(std::span<float> weight, std::span<const float> scales) noexcept;

/// Producers: row j /= s_j, for a weight [scales.size(), columns]; columns 1 for a norm's weight and any bias.
void divide_rows(std::span<float> weight, size_t columns, std::span<const float> scales) noexcept;

/// Producers that are norms which multiply by 1 + w (Gemma): w_j = (1 + w_j) / s_j - 1.
void divide_offset_norm(std::span<float> weight, std::span<const float> scales) noexcept;

}  // namespace wasmquant
