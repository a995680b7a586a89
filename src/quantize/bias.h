// Biases as integers on the grid of their layer's accumulator: scale = input scale * weight scale, zero point 0, the
// full range of the width. Source: Brevitas (aihwkit-brevitas 2.8).
#pragma once
#include <cstdint>
#include <span>

#include "core/result.h"
#include "quantize/qparams.h"

namespace wasmquant {

/// codes[i] = round_half_even(bias[i] / scale[i]), saturated to `bits` (8, 16, 24 or 32) bits; `weight` is one scale or
/// one per element. Errors: shape-mismatch, argument-invalid (bits), value-not-finite (names the element).
Status quantize_bias(std::span<const float> bias, float input_scale, std::span<const QParams> weight, uint32_t bits,
                     std::span<int32_t> codes, std::span<float> scales);

}  // namespace wasmquant
