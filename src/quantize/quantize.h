// Spec + scales + values to codes, and back. Works on any span [begin, begin + x.size()) of a flat tensor, except for
// block dtypes (mx6, mx9, bfp16), whose elements have no individual scales: block_float.h.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/kernels.h"
#include "quantize/granularity.h"
#include "quantize/qparams.h"

namespace wasmquant {

/// One code per element, `code_bytes_of(spec)` each (little-endian; wider codes aligned to their size). `qparams` is in
/// internal scale order, for the whole tensor; plain casts (bfloat16, float16) ignore it. Spans give the same codes as
/// the whole. A fractional zero point has no whole codes on the fake path: such specs always take the real one. A
/// RoundingGrid that fixes when the zero point is added has one path.
void quantize(const Granularity& g, const QuantizationSpec& spec, std::span<const QParams> qparams, kernels::Path path,
              std::span<const float> x, uint64_t begin, uint8_t* codes) noexcept;

/// Values of codes.
void dequantize(const Granularity& g, const QuantizationSpec& spec, std::span<const QParams> qparams,
                const uint8_t* codes, uint64_t count, uint64_t begin, float* y) noexcept;

/// x to its quantized values on the fake path. Integers: (clamp(round(x / scale) + zero_point) - zero_point) * scale,
/// also for a fractional zero point. Floats without NaN (fp4, fp6) pass NaN and infinities through. y may be x.
void fake_quantize(const Granularity& g, const QuantizationSpec& spec, std::span<const QParams> qparams,
                   std::span<const float> x, uint64_t begin, float* y) noexcept;

/// Error between x and its quantized values. Summed in blocks that end at multiples of kErrorBlock of the flat tensor:
/// `append` over spans that begin at such multiples gives the sums of the whole to the bit.
inline constexpr size_t kErrorBlock = 1024;
void append_quantization_error(const Granularity& g, const QuantizationSpec& spec, std::span<const QParams> qparams,
                               std::span<const float> x, const uint8_t* codes, uint64_t begin,
                               kernels::ErrorSums& sums) noexcept;

/// quantize on the real path, and the error of its codes from zero sums.
kernels::ErrorSums quantize_measured(const Granularity& g, const QuantizationSpec& spec,
                                     std::span<const QParams> qparams, std::span<const float> x, uint64_t begin,
                                     uint8_t* codes) noexcept;

}  // namespace wasmquant
