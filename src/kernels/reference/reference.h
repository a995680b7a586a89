// Scalar oracles of the kernels: one element at a time, straight from the definitions in kernels.h. The SIMD bodies
// match them bit for bit and use them for tails. Compiled once, for the baseline instruction set.
#pragma once
#include <array>
#include <span>

#include "kernels/exponential.h"
#include "kernels/kernels.h"
#include "kernels/matmul.h"

namespace wasmquant::kernels::reference {

/// Of a number, as simd::clamp.
inline float clamp(float v, float low, float high) noexcept {
  v = v < low ? low : v;
  return v > high ? high : v;
}

Extent reduce_extent(std::span<const float> x) noexcept;
AbsMax reduce_absmax(std::span<const float> x) noexcept;
int64_t find_non_finite(std::span<const float> x) noexcept;
bool reduce_absmax_runs(std::span<const float> x, size_t run, float* max) noexcept;
bool accumulate_extent(std::span<const float> x, float* min, float* max) noexcept;

void quantize_codes8(std::span<const float> x, const Affine* grids, size_t run, RoundMethod round, Path path,
                     uint8_t* codes) noexcept;
void quantize_codes16(std::span<const float> x, const Affine* grids, size_t run, RoundMethod round, Path path,
                      uint16_t* codes) noexcept;
void quantize_codes8_each(std::span<const float> x, const float* inverse, const float* zero_point, float quant_min,
                          float quant_max, RoundMethod round, Path path, uint8_t* codes) noexcept;
void dequantize_codes8(std::span<const uint8_t> codes, bool is_signed, const Affine* grids, size_t run,
                       float* y) noexcept;
ErrorSums quantize_measured(std::span<const float> x, const Affine* grids, size_t run, uint8_t* codes) noexcept;
void fake_quantize_int(std::span<const float> x, const Affine* grids, size_t run, RoundMethod round, float* y) noexcept;

void divide(std::span<const float> x, const float* divisors, size_t stride, float* y) noexcept;

void quantize_float(std::span<const float> x, const float* scales, size_t run, const FloatFormat& format,
                    uint8_t* codes) noexcept;
void dequantize_float(std::span<const uint8_t> codes, const float* scales, size_t run, const FloatFormat& format,
                      float* y) noexcept;
void fake_quantize_float(std::span<const float> x, const float* scales, size_t run, const FloatFormat& format,
                         float* y) noexcept;

void quantize_block_float(std::span<const float> row, const BlockFloatFormat& format, uint8_t* exponents,
                          uint8_t* shifts, int8_t* codes) noexcept;
void dequantize_block_float(std::span<const int8_t> codes, const BlockFloatFormat& format, const uint8_t* exponents,
                            const uint8_t* shifts, float* y) noexcept;

void widen_bf16(std::span<const uint16_t> bits, float* x) noexcept;
void widen_f16(std::span<const uint16_t> bits, float* x) noexcept;
void narrow_bf16(std::span<const float> x, uint16_t* bits) noexcept;
void narrow_f16(std::span<const float> x, uint16_t* bits) noexcept;

void pack_nibbles(std::span<const uint8_t> codes, uint32_t offset, uint8_t* bytes) noexcept;
void unpack_nibbles(std::span<const uint8_t> bytes, size_t count, uint32_t offset, bool is_signed,
                    uint8_t* codes) noexcept;

void matmul(const Factor& a, const Factor& b, size_t depth, size_t rows, size_t columns, Update update, Region region,
            float* c, size_t c_stride) noexcept;

/// exp(x) for x clamped to -87..88.
float exp(float x) noexcept;
/// Sums of a tree of halves: i + 8, i + 4, i + 2, i + 1.
float sum_of_halves(std::array<float, 16> sums) noexcept;
float exponentials(std::span<const float> x, float shift, float* y) noexcept;
void soft_cap(std::span<float> x, float cap) noexcept;
void activate_gate(Activation activation, std::span<float> gate, const float* up) noexcept;

ErrorSums error_between(std::span<const float> x, const float* y) noexcept;

/// The float32 sums of one block, before is_in_range() is checked.
ErrorSums error_in_lanes(std::span<const float> x, const float* y) noexcept;
/// One block in float64, in order, finite pairs only: for float32 sums that left their safe range.
ErrorSums error_in_float64(std::span<const float> x, const float* y) noexcept;

}  // namespace wasmquant::kernels::reference
