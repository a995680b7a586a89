// Spec + scales + values to codes, and back. Works on any piece [begin, begin + x.size()) of a flat tensor, except for
// block dtypes (mx6, mx9, bfp16), whose elements have no scale of their own: block_float.h.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/kernels.h"
#include "quantize/granularity.h"
#include "quantize/qparams.h"

namespace wasmquant {

/// One code per element, `code_bytes_of(spec)` each (little-endian; wider codes lie at multiples of their size).
/// `qparams` is in internal scale order, for the whole tensor; plain casts (bfloat16, float16) ignore it. Pieces give
/// the codes of the whole. A fractional zero point has no whole codes on the fake path: such specs always take the real
/// one. A GridRule that says when the zero point is added has one path.
void quantize(const Granularity& g, const QuantizationSpec& spec, std::span<const QParams> qparams, kernels::Path path,
              std::span<const float> x, uint64_t begin, uint8_t* codes) noexcept;

/// Values of codes.
void dequantize(const Granularity& g, const QuantizationSpec& spec, std::span<const QParams> qparams,
                const uint8_t* codes, uint64_t count, uint64_t begin, float* y) noexcept;

/// x to the values of its codes on the fake path. Integers: (clamp(round(x / scale) + zero_point) - zero_point) *
/// scale, also where the zero point is fractional. Floats without NaN (fp4, fp6) let NaN and infinities through. y may
/// be x.
void fake_quantize(const Granularity& g, const QuantizationSpec& spec, std::span<const QParams> qparams,
                   std::span<const float> x, uint64_t begin, float* y) noexcept;

/// Error between x and the values of its codes. Summed in blocks that end at multiples of kErrorBlock of the flat
/// tensor: `append` to the same sums over pieces that begin at such multiples gives the sums of the whole to the bit.
inline constexpr size_t kErrorBlock = 1024;
void append_quantization_error(const Granularity& g, const QuantizationSpec& spec, std::span<const QParams> qparams,
                               std::span<const float> x, const uint8_t* codes, uint64_t begin,
                               kernels::ErrorSums& sums) noexcept;

/// The same, from nothing.
kernels::ErrorSums quantization_error(const Granularity& g, const QuantizationSpec& spec,
                                      std::span<const QParams> qparams, std::span<const float> x, const uint8_t* codes,
                                      uint64_t begin) noexcept;

/// quantize on the real path, and quantization_error of what it gives.
kernels::ErrorSums quantize_measured(const Granularity& g, const QuantizationSpec& spec,
                                     std::span<const QParams> qparams, std::span<const float> x, uint64_t begin,
                                     uint8_t* codes) noexcept;

}  // namespace wasmquant
