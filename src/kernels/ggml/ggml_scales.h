// The scales of a super-block's sub-blocks as small integers times one factor.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>

namespace wasmquant::kernels {

/// ggml's rounding: nearest even, wrapped beyond 2^22 (ggml_stages.h, Coding). NaN is 0.
inline int32_t nearest_int(float v) noexcept {
  if (v != v) return 0;
  return (std::bit_cast<int32_t>(v + 12582912.0f) & 0x7FFFFF) - 0x400000;
}
inline uint8_t byte_of(int32_t v) noexcept { return static_cast<uint8_t>(v); }

/// Codes 0..levels of x in units of largest / levels. Returns the unit, 0 when no x is positive.
float divide_scales(const float* x, size_t count, int32_t levels, uint8_t* codes) noexcept;

/// The same with the unit that minimises the weighted squared error: the best of nine factors, then a descent as in
/// search_descent. (make_qp_quants)
float fit_scales(const float* x, const float* weight, size_t count, int32_t levels, uint8_t* codes) noexcept;

/// The element of the largest magnitude, the first of equals.
float largest_of(const float* scale, size_t count) noexcept;

}  // namespace wasmquant::kernels
