// Contracts of the hot loops. Every function has one xsimd body for all architectures and a scalar oracle of the same
// name in reference.h; both give the same bits, natively and in WebAssembly.
//
// Common to all: `x` is float32; pointers need no alignment; input and output must not overlap unless stated;
// noexcept, no allocation, cannot fail (preconditions are the caller's).
//
// NaN and infinity: the pipeline rejects them unless the config says "saturate". Kernels still define them: NaN
// quantizes to the zero point (integers) or to NaN's code (floats), infinity saturates.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "numeric/block_float.h"
#include "numeric/minifloat.h"
#include "numeric/rounding.h"

namespace wasmquant::kernels {

// ---- reduce.cpp

/// Smallest and largest finite value (zeros as +0), and whether all were finite. Empty: {+inf, -inf, true}.
struct Extent {
  float min;
  float max;
  bool all_finite;
};
Extent reduce_extent(std::span<const float> x) noexcept;

/// Largest |x| over finite values (0 when empty), and whether all are finite. Cheaper than reduce_extent.
struct AbsMax {
  float value;
  bool all_finite;
};
AbsMax reduce_absmax(std::span<const float> x) noexcept;

/// The same for consecutive runs of `run` elements (the last may be shorter): max[i] of run i. Whether all are finite.
bool reduce_absmax_runs(std::span<const float> x, size_t run, float* max) noexcept;

/// Index of the first NaN or infinity, or -1. As fast as reduce_absmax when there is none.
int64_t find_non_finite(std::span<const float> x) noexcept;

/// min[i] = smaller of min[i] and x[i], max[i] likewise; returns false if any x is not finite (those are skipped).
bool accumulate_extent(std::span<const float> x, float* min, float* max) noexcept;

// ---- quantize_int.cpp

/// One affine code grid. Codes are quant_min..quant_max. On the fake path a fractional zero point gives fractional
/// positions: fake_quantize_int keeps them (as Quark does), quantize_codes8 takes the nearest code, ties to even.
struct Affine {
  float scale;       // > 0, finite
  float inverse;     // 1.0f / max(scale, 2^-126), one float32 division
  float zero_point;  // whole number, or fractional for zero_point_type float32
  float quant_min;
  float quant_max;
};

/// When the zero point is added. The results differ at ties with odd zero points (Quark, spec section 5.1 and 5.2).
///   fake: clamp(round(x * inverse) + zero_point)     real: clamp(round(x * inverse + zero_point))
enum class Path : uint8_t { fake, real };

// Runs: consecutive elements share a grid or a scale, element i uses grids[i / run]; the last run may be shorter.
// run >= 1.

/// float32 to codes of up to 8 bits, one byte each (two's complement for signed dtypes).
void quantize_codes8(std::span<const float> x, const Affine* grids, size_t run, RoundMethod round, Path path,
                     uint8_t* codes) noexcept;
/// The same for 9 to 16 bits.
void quantize_codes16(std::span<const float> x, const Affine* grids, size_t run, RoundMethod round, Path path,
                      uint16_t* codes) noexcept;
/// Per-element grids (channels along the last axis): scale[i], inverse[i], zero_point[i] belong to x[i].
void quantize_codes8_each(std::span<const float> x, const float* inverse, const float* zero_point, float quant_min,
                          float quant_max, RoundMethod round, Path path, uint8_t* codes) noexcept;

/// (code - zero_point) * scale, code read as signed or unsigned byte.
void dequantize_codes8(std::span<const uint8_t> codes, bool is_signed, const Affine* grids, size_t run,
                       float* y) noexcept;

/// x to the value of its code, on the fake path: (clamp(round(x*inverse)+zero_point) - zero_point) * scale. y may be x.
void fake_quantize_int(std::span<const float> x, const Affine* grids, size_t run, RoundMethod round, float* y) noexcept;

// ---- divide.cpp

/// y[i] = x[i] / divisors[i * stride], correctly rounded; stride is 0 (one divisor) or 1. For grids defined on
/// quotients: call the kernels above with `inverse` 1. y may be x; the payload of a NaN is unspecified.
void divide(std::span<const float> x, const float* divisors, size_t stride, float* y) noexcept;

// ---- quantize_float.cpp: any minifloat whose magnitudes float32 holds as normal numbers (exponent_bits <= 7,
// mantissa_bits <= 10). Division by the scale, not multiplication by the reciprocal; runs as above.

/// code = cast(x / scale): nearest even, gradual underflow, saturation; formats of up to 8 bits, one byte each.
/// NaN gives the format's NaN (all ones where there is a choice, as torch), +0 where it has none.
void quantize_float(std::span<const float> x, const float* scales, size_t run, const FloatFormat& format,
                    uint8_t* codes) noexcept;
/// value(code) * scale, one float32 multiplication.
void dequantize_float(std::span<const uint8_t> codes, const float* scales, size_t run, const FloatFormat& format,
                      float* y) noexcept;
/// x to cast(x / scale) * scale, for formats of any width. Formats without NaN pass NaN and infinities through
/// unchanged (AMD Quark's fp4 and fp6). y may be x.
void fake_quantize_float(std::span<const float> x, const float* scales, size_t run, const FloatFormat& format,
                         float* y) noexcept;

// ---- block_float.cpp: blocks that share an exponent (numeric/block_float.h), along contiguous rows

/// One row in blocks of format.block elements; the last may be shorter (as if padded with zeros). exponents: one byte
/// per block; shifts: one byte (0 or 1) per pair of elements, null for formats without. Non-finite elements count as 0.
void quantize_block_float(std::span<const float> row, const BlockFloatFormat& format, uint8_t* exponents,
                          uint8_t* shifts, int8_t* codes) noexcept;
void dequantize_block_float(std::span<const int8_t> codes, const BlockFloatFormat& format, const uint8_t* exponents,
                            const uint8_t* shifts, float* y) noexcept;

// ---- convert.cpp: plain casts, nearest even, float16 overflow becomes infinity. NaN stays NaN with its sign and upper
// payload, and becomes quiet; widen_bf16 is the bare shift.

void widen_bf16(std::span<const uint16_t> bits, float* x) noexcept;
void widen_f16(std::span<const uint16_t> bits, float* x) noexcept;
void narrow_bf16(std::span<const float> x, uint16_t* bits) noexcept;
void narrow_f16(std::span<const float> x, uint16_t* bits) noexcept;

// ---- nibbles.cpp: two four-bit codes per byte, the first in the low nibble; an odd last code gets a zero high nibble

/// nibble = (code + offset) & 15; writes ceil(codes.size() / 2) bytes. offset 8 stores int4 as compressed-tensors does.
void pack_nibbles(std::span<const uint8_t> codes, uint32_t offset, uint8_t* bytes) noexcept;
/// code = (nibble - offset) & 15, as a signed byte -8..7 when is_signed. `count` codes from ceil(count / 2) bytes.
void unpack_nibbles(std::span<const uint8_t> bytes, size_t count, uint32_t offset, bool is_signed,
                    uint8_t* codes) noexcept;

// ---- error_stats.cpp

/// Sums over a run of elements, for SQNR, MSE, max abs error and cosine. Pairs with a NaN or an infinity are counted
/// separately, not summed. The order of additions is fixed (16 interleaved float32 sums per 1024 elements, then
/// float64; error_lanes.h), so the result depends only on the run, not on the architecture. A 1024-block whose float32
/// sums overflow or underflow (an energy outside [1e-30, 1e30]) is summed again in float64.
struct ErrorSums {
  double signal = 0;     // sum of x^2
  double quantized = 0;  // sum of y^2
  double noise = 0;      // sum of (x - y)^2
  float max_abs = 0;     // max |x - y|
  uint64_t count = 0;    // pairs summed
  uint64_t x_not_finite = 0;
  uint64_t y_not_finite = 0;

  /// Adds the sums of the run that follows.
  void append(const ErrorSums& next) noexcept {
    signal += next.signal;
    quantized += next.quantized;
    noise += next.noise;
    max_abs = next.max_abs > max_abs ? next.max_abs : max_abs;
    count += next.count;
    x_not_finite += next.x_not_finite;
    y_not_finite += next.y_not_finite;
  }
  bool all_finite() const noexcept { return (x_not_finite | y_not_finite) == 0; }
};
/// Error between x and y.
ErrorSums error_between(std::span<const float> x, const float* y) noexcept;

/// quantize_codes8 with half_even on the real path, and the error of the codes' values, in one pass
/// (quantize_measured.cpp). At most 1024 elements, one block of error_lanes.h: the sums are valid if is_in_range(), the
/// codes always. x.size() and run are multiples of kMeasuredRun.
inline constexpr size_t kMeasuredRun = 32;
ErrorSums quantize_measured(std::span<const float> x, const Affine* grids, size_t run, uint8_t* codes) noexcept;

}  // namespace wasmquant::kernels
