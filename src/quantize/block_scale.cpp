#include "quantize/block_scale.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "quantize/qparams.h"

namespace wasmquant {

float e8m0_scale_of(float amax, int mantissa_bits, int max_exponent, ScaleCalculationMode mode) noexcept {
  if (mode == ScaleCalculationMode::even) {
    const uint32_t bumped = (std::bit_cast<uint32_t>(amax) & 0x7FFFFFFF) + (1u << (23 - mantissa_bits - 1));
    const int exponent = std::max(static_cast<int>(bumped >> 23), 1) - 127;
    return static_cast<float>(power_of_two(std::clamp(exponent - max_exponent, -127, 127)));
  }
  if (amax == 0) return kScaleEpsilon;
  int exponent = std::ilogb(amax);
  if (mode == ScaleCalculationMode::ceil && power_of_two(exponent) != double{amax}) ++exponent;
  // Quark's scales go on below 2^-127, which e8m0 cannot store; above 2^127 there is no float32.
  const float scale = static_cast<float>(power_of_two(std::min(exponent - max_exponent, 127)));
  return scale == 0 ? kScaleEpsilon : scale;
}

float rounded_to_fp8(Dtype dtype, float scale) noexcept {
  const FloatFormat format = float_format_of(dtype);
  return decode(format, encode(format, scale, Overflow::saturate));
}

}  // namespace wasmquant
