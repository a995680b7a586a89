// Scales of blocks in their storage formats.
#pragma once
#include "config/spec/spec.h"

namespace wasmquant {

/// The e8m0 scale of a block with the largest magnitude `amax`, as float32. Element format: mantissa_bits and
/// max_exponent (floor(log2) of its largest value). AMD Quark, spec 3.4:
///   even   2^(E - max_exponent), E = exponent of amax after adding half a unit of the element's last mantissa bit, so
/// it
///          rounds up where the element would; amax 0 counts as 2^-126; clamped to 2^-127..2^127
///   floor  2^(floor(log2 amax) - max_exponent), the rule of the OCP specification; 2^-23 for amax 0
///   ceil   2^(ceil(log2 amax) - max_exponent); 2^-23 for amax 0
float e8m0_scale_of(float amax, int mantissa_bits, int max_exponent, ScaleCalculationMode mode) noexcept;

/// The value of the nearest fp8 code of a positive scale (saturating), 0 where it rounds to nothing.
float rounded_to_fp8(Dtype dtype, float scale) noexcept;

}  // namespace wasmquant
