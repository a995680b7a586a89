// Blocks whose scale and codes follow from their elements at once, without a search.
//   q1_0   d = mean of |x|;                     code = x >= 0                    d, a bit each
//   q2_0   d = absmax;                          code = round(x / d) + 1          d, two bits each
//   nvfp4  for each 16, d = e4m3(absmax / 6);   code = nearest fp4 value times d  four scales, nibbles
// where x / d is x times the float32 reciprocal of the unrounded d, and halves are rounded away from zero, of scales up.
// Source: quantize_row_q1_0_ref, quantize_row_q2_0_ref, quantize_row_nvfp4_ref of ggml-quants.c.
#include <algorithm>
#include <bit>
#include <cmath>

#include "kernels/ggml/ggml_grid.h"
#include "kernels/ggml/ggml_layout.h"
#include "kernels/ggml/ggml_recipes.h"
#include "numeric/half.h"

namespace wasmquant::kernels {
namespace {

constexpr size_t kMaxBlock = 128, kScaled = 16;

/// An unsigned e4m3 scale of a finite v >= 0; 448 from 256 on.
uint8_t ue4m3_of(float v) {
  constexpr uint32_t kLargest = 0x7E, kBias = 120u << 3;  // of float32 less that of e4m3, in eighths
  const uint32_t bits = std::bit_cast<uint32_t>(v);
  if (bits >> 20 < kBias + 8) return static_cast<uint8_t>(std::min(v * 512.0f + 0.5f, 7.0f));
  const uint32_t code = (bits >> 20) + (bits >> 19 & 1) - kBias;
  return static_cast<uint8_t>(code < 15 << 3 ? code : kLargest);
}

float magnitude_of(const float* x, size_t count) {
  float most = 0;
  for (size_t i = 0; i < count; ++i) most = std::max(most, std::fabs(x[i]));
  return most;
}

void store_signs(const float* x, size_t count, uint8_t* codes, uint8_t* out) {
  float sum = 0;
  for (size_t i = 0; i < count; ++i) {
    sum += std::fabs(x[i]);
    codes[i] = x[i] >= 0;
  }
  store_u16(half_of(sum / static_cast<float>(count)), out);
}

/// A reciprocal that overflows leaves zeros, as ggml's conversion of infinity and NaN does.
void store_thirds(const float* x, size_t count, uint8_t* codes, uint8_t* out) {
  const float d = magnitude_of(x, count), inverse = d > 0 ? 1 / d : 0;
  for (size_t i = 0; i < count; ++i)
    codes[i] = std::isinf(inverse) ? uint8_t{0} : static_cast<uint8_t>(std::round(x[i] * inverse) + 1);
  store_u16(half_of(d), out);
}

void store_fp4_scaled(const float* x, size_t count, uint8_t* codes, uint8_t* out) {
  constexpr float kNoMinimum[kMaxBlock] = {};
  float scale[kMaxBlock], nearest[kMaxBlock];
  for (size_t run = 0; run * kScaled < count; ++run) out[run] = ue4m3_of(magnitude_of(x + run * kScaled, kScaled) / 6);
  const BlockGrid grid = grid_of(GgmlType::nvfp4, out);
  for (size_t i = 0; i < count; ++i) scale[i] = grid.scale[i / kScaled];
  std::copy_n(x, count, nearest);
  nearest_codes(GgmlType::nvfp4, scale, kNoMinimum, count, nearest, codes);
}

}  // namespace

bool is_direct(GgmlType type) noexcept {
  return type == GgmlType::q1_0 || type == GgmlType::q2_0 || type == GgmlType::nvfp4;
}

void store_direct_block(GgmlType type, const float* x, uint8_t* out) noexcept {
  const size_t count = info_of(type).block;
  uint8_t codes[kMaxBlock];
  if (type == GgmlType::q1_0)
    store_signs(x, count, codes, out);
  else if (type == GgmlType::q2_0)
    store_thirds(x, count, codes, out);
  else
    store_fp4_scaled(x, count, codes, out);
  put_codes(type, codes, out);
}

}  // namespace wasmquant::kernels
