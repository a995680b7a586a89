// Observed range to scale and zero point.
//   symmetric:  scale = max(max(-min, max, 0) / ((quant_max - quant_min) / 2), 2^-23), zero_point 0      (amax / 127.5,
//   / 7.5) asymmetric: scale = max((max - min) / (quant_max - quant_min), 2^-23) with 0 inside [min, max],
//               zero_point = clamp(quant_min - round_half_even(min / scale))
//   floats:     scale = amax / max_finite, 2^-23 if that is 0; no zero point
// Source: AMD Quark MinMax observers (spec 4.2, 4.3); torch.ao MinMaxObserver gives the same.
#pragma once
#include <vector>

#include "config/spec.h"
#include "kernels/kernels.h"

namespace wasmquant {

/// scale 2^-23, the smallest that a min-max observer gives.
inline constexpr float kScaleEpsilon = 1.1920929e-07f;

struct QParams {
  float scale;
  float zero_point;  // 0 for floats and symmetric integers
};

/// min > max (nothing seen) gives scale 1, zero point 0. The scale is already rounded to spec.scale_type;
/// the zero point comes from the scale before that.
QParams qparams_of(float min, float max, const QuantizationSpec& spec) noexcept;

/// The code grid of one scale. For integer dtypes.
kernels::Affine affine_of(const QParams& q, const QuantizationSpec& spec) noexcept;

}  // namespace wasmquant
