// SmoothQuant: the range of activations moves into the weights that read them. Each input feature j of a set of linear
// layers is divided by s_j where it is made, and their columns j are multiplied by s_j.
//   s_j = max(a_j^alpha / w_j^(1 - alpha), scale_clamp_min),  a_j = max |x_j|,  w_j = max(max |W_ij|, weight_clamp_min)
// Source: G. Xiao et al., "SmoothQuant", 2022, equation 4; AMD Quark's clamps (spec 7.1). Brevitas (aihwkit-brevitas 3)
// has none, and leaves features alone where there is nothing to balance: {alpha, 0, 0, 1e-9}.
#pragma once
#include <cstdint>
#include <span>

#include "core/result.h"

namespace wasmquant {

/// Field names and defaults are Quark's.
struct SmoothQuantOptions {
  double alpha = 1.0;  // 0: nothing moves but the weights' own range; 1: all of the activations' range moves
  double scale_clamp_min = 1e-3;
  double weight_clamp_min = 1e-5;
  double negligible = -1;  // s_j = 1 where a_j or max |W_ij| is not above this
};

/// max[j] = max(max[j], |x_ij|) over the rows of x [*, max.size()]: weights of several layers, tiles of one, or
/// activations. Errors, with `max` as before: shape-mismatch (not whole rows), value-not-finite (row and column).
Status accumulate_column_absmax(std::span<const float> x, std::span<float> max);

/// scales[j] from a_j and max_i |W_ij| over all rows of all layers, computed in float64; the three have one length.
/// Errors: shape-mismatch, value-not-finite (names the feature: a scale that float32 cannot hold, too).
Status smooth_scales(std::span<const float> activation_max, std::span<const float> weight_max,
                     const SmoothQuantOptions& options, std::span<float> scales);

/// Grouped-query attention, v_proj -> o_proj: each of v's kv_heads heads is read by `repeats` consecutive heads of o.
/// Every repeat's scales [kv_heads, repeats, head_size] become their largest, and head_scales [kv_heads, head_size]
/// gets them once. Error: shape-mismatch.
Status share_head_scales(std::span<float> scales, size_t repeats, size_t head_size, std::span<float> head_scales);

/// The reading side: W[:, j] *= s_j, for rows of a weight [*, scales.size()].
void scale_columns(std::span<float> weight, std::span<const float> scales) noexcept;

/// The making side: row j /= s_j, for a weight [scales.size(), columns]; columns 1 for a norm's weight and any bias.
void divide_rows(std::span<float> weight, size_t columns, std::span<const float> scales) noexcept;

/// The making side where a norm multiplies by 1 + w (Gemma): w_j = (1 + w_j) / s_j - 1.
void divide_offset_norm(std::span<float> weight, std::span<const float> scales) noexcept;

}  // namespace wasmquant
