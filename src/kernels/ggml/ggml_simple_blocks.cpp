// Blocks of 32 elements whose scale follows from their extent.
//   q4_0, q5_0   d = extreme / -8 (-16);             code = trunc(x / d + 8.5 (16.5))   d, [fifth bits], nibbles
//   q4_1, q5_1   d = (max - min) / 15 (31), m = min; code = trunc((x - m) / d + 0.5)    d, m, [fifth bits], nibbles
//   q8_0         d = absmax / 127;                   code = round(x / d)                d, bytes
//   mxfp4        exponent = floor(log2(absmax)) - 2; code = nearest fp4 value           exponent + 127, nibbles
// where x / d is x times the float32 reciprocal of the unrounded d; d and m are stored as float16.
#include <bit>
#include <cmath>

#include "kernels/ggml/ggml_grid.h"
#include "kernels/ggml/ggml_layout.h"
#include "kernels/ggml/ggml_recipes.h"
#include "numeric/half.h"

namespace wasmquant::kernels {
namespace {

constexpr size_t kBlock = kExtentRun, kMaxBlocks = kRecipeElements / kBlock;

struct SimpleType {
  float levels;  // divisor of the extent
  RunCoding coding;
  RunPacking packing;
};
SimpleType simple_type(GgmlType type) {
  switch (type) {
    case GgmlType::q4_0:
      return {-8, {8.5f, 15, 8, false, false}, RunPacking::nibbles};
    case GgmlType::q5_0:
      return {-16, {16.5f, 31, 16, false, false}, RunPacking::fifths};
    case GgmlType::q4_1:
      return {15, {0.5f, 15, 0, false, true}, RunPacking::nibbles};
    case GgmlType::q5_1:
      return {31, {0.5f, 31, 0, false, true}, RunPacking::fifths};
    default:  // q8_0
      return {127, {0, 0, 0, true, false}, RunPacking::bytes};
  }
}

/// When both ends of a block have the same magnitude, the one that comes first counts. run_scales takes the low one
/// unless the high one is larger.
void settle_tie(const float* x, float& low, float high) {
  if (high != -low || high == 0) return;
  while (*x != high && *x != low) ++x;
  if (*x == high) low = 0;
}

/// The first zero of a block whose minimum is zero; the stored minimum keeps its sign.
float first_zero(const float* x) {
  while (*x != 0) ++x;
  return *x;
}

/// floor(log2(v)) of a positive v, with the logarithm first rounded to float32. k steps of a 24-bit significand below
/// 2^n, log2 is n - k * 2^-24 * log2(e), which rounds to n while the distance is below half a last place of n.
int32_t floor_of_log2(float v) {
  const uint32_t bits = std::bit_cast<uint32_t>(v);
  const int shift = bits < 0x00800000 ? std::countl_zero(bits) - 8 : 0;
  const uint32_t significand = shift > 0 ? bits << shift : (bits & 0x7FFFFF) | 0x800000;
  const int32_t above = shift > 0 ? -125 - shift : static_cast<int32_t>(bits >> 23) - 126;  // v < 2^above
  const uint32_t below = 0x1000000 - significand;  // v = 2^above - below * 2^(above - 24)
  const auto distance = static_cast<uint32_t>(above < 0 ? -above : above);
  if (distance == 0) return -1;
  int places = 31 - std::countl_zero(distance);  // the last place of n, towards v, is 2^(places - 23)
  if (above > 0 && std::has_single_bit(distance)) --places;
  return places >= 0 && below <= (0xB172u << places) >> 16 ? above : above - 1;  // ln(2) * 2^places
}

/// mxfp4: the stored exponent, and the factor that maps elements to fp4 values. Below 2^-125 the exponent wraps, as in
/// ggml, and all elements become zero; 255, which means NaN and fails llama.cpp's validation, becomes 0.
uint8_t mxfp4_exponent(float absmax, float& factor) {
  const int32_t exponent = absmax > 0 ? floor_of_log2(absmax) - 2 + 127 : 0;
  factor = exponent < 0 ? 0 : std::bit_cast<float>(static_cast<uint32_t>(254 - exponent) << 23);
  return exponent == -1 ? uint8_t{0} : static_cast<uint8_t>(exponent);
}

}  // namespace

void store_mxfp4(const Stages& stages, const float* x, size_t blocks, uint8_t* out) noexcept {
  uint8_t codes[kRecipeElements], exponent[kMaxBlocks];
  float low[kMaxBlocks], high[kMaxBlocks], factor[kMaxBlocks];
  stages.extents(x, blocks, low, high);
  for (size_t i = 0; i < blocks; ++i)
    exponent[i] = mxfp4_exponent(std::fabs(high[i] > -low[i] ? high[i] : low[i]), factor[i]);
  stages.codes_fp4(x, blocks * kBlock, factor, codes);
  for (size_t i = 0; i < blocks; ++i, out += 17) {
    out[0] = exponent[i];
    put_codes(GgmlType::mxfp4, codes + i * kBlock, out);
  }
}

ErrorSums store_simple_blocks(const Stages& stages, GgmlType type, const float* x, size_t blocks,
                              uint8_t* out) noexcept {
  const SimpleType simple = simple_type(type);
  const bool has_minimum = simple.coding.has_minimum, is_signed = simple.levels < 0;
  float low[kMaxBlocks] = {}, high[kMaxBlocks] = {}, add[kMaxBlocks], factor[kMaxBlocks];
  float scale[kMaxBlocks], minimum[kMaxBlocks];
  uint16_t scale_half[kMaxBlocks], minimum_half[kMaxBlocks];  // as stored
  stages.extents(x, blocks, low, high);
  for (size_t i = 0; i < blocks; ++i) {
    if (has_minimum && low[i] == 0) low[i] = first_zero(x + i * kBlock);
    if (is_signed) settle_tie(x + i * kBlock, low[i], high[i]);
  }
  const bool any_unusable = stages.scales(low, high, blocks, simple.levels, has_minimum, scale, factor, add);
  bool is_all_zero[kMaxBlocks];
  for (size_t i = 0; any_unusable && i < blocks; ++i) is_all_zero[i] = factor[i] == 0 && scale[i] != 0;
  narrow_f16({scale, blocks}, scale_half);
  widen_f16({scale_half, blocks}, scale);
  if (has_minimum) {
    narrow_f16({low, blocks}, minimum_half);
    widen_f16({minimum_half, blocks}, minimum);
  }

  const size_t block_bytes = info_of(type).block_bytes, head_bytes = has_minimum ? 4 : 2;
  const RunBytes to = {out + head_bytes, block_bytes, simple.packing};
  ErrorSums error = stages.codes_measured(x, blocks, simple.coding, {add, factor, scale, minimum}, to);
  if (any_unusable) {
    // The quotients are NaN: ggml converts those to a zero byte.
    error = {};
    for (size_t i = 0; i < blocks; ++i)
      if (is_all_zero[i]) std::memset(to.bytes + i * block_bytes, 0, block_bytes - head_bytes);
  }
  for (size_t i = 0; i < blocks; ++i, out += block_bytes) {
    store_u16(scale_half[i], out);
    if (has_minimum) store_u16(minimum_half[i], out + 2);
  }
  return error;
}

}  // namespace wasmquant::kernels
