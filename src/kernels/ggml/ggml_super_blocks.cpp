// Blocks of 256 elements: sub-blocks of 16 or 32 with small integer scales under one float16 (d); affine types also
// have minima under a second one (dmin). Final codes are computed from the scales as stored.
//   q2_k   16 bytes scale | minimum << 4, 64 bytes codes, d, dmin        x ~ d * scale * code - dmin * minimum
//   q3_k   32 bytes third bits, 64 bytes codes, 12 bytes scales, d       x ~ d * (scale - 32) * (code - 4)
//   q4_k   d, dmin, 12 bytes scales and minima, 128 bytes codes          as q2_k
//   q5_k   d, dmin, 12 bytes, 32 bytes fifth bits, 128 bytes codes       as q2_k
//   q6_k   128 bytes low nibbles, 64 bytes upper bits, 16 int8 scales, d x ~ d * scale * (code - 32)
//   iq4_xs d, 2 bytes upper scale bits, 4 bytes lower ones, 128 bytes    x ~ d * (scale - 32) * value(code)
//   tq1_0  52 bytes trits, d;   tq2_0  64 bytes codes, d                 x ~ d * (code - 1)
#include <cmath>

#include "kernels/ggml/ggml_grid.h"
#include "kernels/ggml/ggml_layout.h"
#include "kernels/ggml/ggml_recipes.h"
#include "kernels/ggml/ggml_scales.h"
#include "numeric/half.h"

namespace wasmquant::kernels {
namespace {

constexpr size_t kMaxParts = 16;
constexpr float kEmptyBelow = 1e-15f;

/// Search results per sub-block. The minimum has its sign flipped: x ~ scale * code - minimum.
struct Parts {
  size_t count, length;
  float scale[kMaxParts], minimum[kMaxParts], add[kMaxParts], factor[kMaxParts], weight[kMaxParts];
  bool is_empty[kMaxParts];

  explicit Parts(size_t part_length) : count(kSuperBlock / part_length), length(part_length) {}
  void take(size_t at, const SearchResult& r) {
    for (size_t i = 0; i < kSearchWidth; ++i) {
      scale[at + i] = r.scale[i];
      minimum[at + i] = -r.minimum[i];
      add[at + i] = r.add[i];
      factor[at + i] = r.factor[i];
      weight[at + i] = r.weight[i];
      is_empty[at + i] = r.is_empty[i];
    }
  }
};

/// Calls search(input, first part) for every eight sub-blocks. `factor` times the mean square goes into the weights.
template <class Search>
void for_each_eight(const float* x, const float* importance, size_t length, Weighting weighting, float factor,
                    Search search) {
  float energies[kSearchWidth];
  if (weighting == Weighting::given_energy) {
    float energy = 0;
    for (size_t i = 0; i < kSuperBlock; ++i) energy += x[i] * x[i];
    for (float& e : energies) e = factor * energy / kSuperBlock;
  }
  const size_t unit = length * kSearchWidth;
  for (size_t at = 0; at < kSuperBlock; at += unit)
    search(SearchInput{x + at, length, weighting, importance ? importance + at : nullptr, energies}, at / length);
}

/// Final codes: nearest((x + add) / d). Where d is zero, the codes of the search stay.
void final_codes(const Stages& stages, const float* x, const Parts& parts, const float* add, const float* d,
                 const CodeRange& range, Coding own, uint8_t* codes) {
  stages.codes(Coding::divided, x, kSuperBlock, parts.length, add, d, range, codes);
  for (size_t i = 0; i < parts.count; ++i) {
    if (d[i] != 0) continue;
    float padded[32] = {};
    uint8_t own_codes[32] = {};
    std::memcpy(padded, x + i * parts.length, parts.length * sizeof(float));
    if (!parts.is_empty[i]) stages.codes(own, padded, 32, 32, parts.add + i, parts.factor + i, range, own_codes);
    std::memcpy(codes + i * parts.length, own_codes, parts.length);
  }
}

/// q2_k, q4_k, q5_k.
struct AffineType {
  size_t length;
  AffineSearch plain, weighted;
  Weighting weighting;
  float energy_factor;
  int32_t scale_levels;
};
constexpr AffineType kQ2K = {
    16, {3, -0.5f, 0.1f, 15, true, false}, {3, -0.9f, 0.05f, 36, false, true}, Weighting::magnitude, 1, 15};
constexpr AffineType kQ4K = {
    32, {15, -1, 0.1f, 20, false, false}, {15, -0.9f, 0.05f, 36, false, true}, Weighting::rms_magnitude, 2, 63};
constexpr AffineType kQ5K = {
    32, {31, -0.5f, 0.1f, 15, false, false}, {31, -0.9f, 0.05f, 36, false, true}, Weighting::rms_magnitude, 2, 63};

void store_affine(const Stages& stages, GgmlType type, const float* x, const float* importance, uint8_t* out) {
  const AffineType& affine = type == GgmlType::q2_k ? kQ2K : type == GgmlType::q4_k ? kQ4K : kQ5K;
  const AffineSearch& search = importance ? affine.weighted : affine.plain;
  Parts parts(affine.length);
  for_each_eight(x, importance, affine.length, importance ? Weighting::given_energy : affine.weighting,
                 affine.energy_factor, [&](const SearchInput& in, size_t at) {
                   SearchResult result;
                   stages.affine(in, search, result);
                   parts.take(at, result);
                 });
  uint8_t scales[kMaxParts], minima[kMaxParts];
  const auto store_d = [&](const float* found, uint8_t* codes) {
    return half_of(importance ? fit_scales(found, parts.weight, parts.count, affine.scale_levels, codes)
                              : divide_scales(found, parts.count, affine.scale_levels, codes));
  };
  const uint16_t d = store_d(parts.scale, scales), d_min = store_d(parts.minimum, minima);
  uint8_t codes[kSuperBlock], packed[kMaxParts];
  if (type == GgmlType::q2_k) {
    for (size_t i = 0; i < kMaxParts; ++i) {
      packed[i] = static_cast<uint8_t>(scales[i] | minima[i] << 4);
      scales[i] = packed[i] & 15;
      minima[i] = packed[i] >> 4;
    }
  } else {
    const bool is_bounded = !importance || type == GgmlType::q5_k;
    for (size_t i = 0; is_bounded && i < parts.count; ++i) {
      scales[i] = scales[i] < 63 ? scales[i] : 63;
      minima[i] = minima[i] < 63 ? minima[i] : 63;
    }
    pack_scales_k4(scales, minima, packed);
    unpack_scales_k4(packed, scales, minima);
  }
  float divisor[kMaxParts], add[kMaxParts];
  for (size_t i = 0; i < parts.count; ++i) {
    divisor[i] = from_half(d) * scales[i];
    add[i] = from_half(d_min) * minima[i];
  }
  final_codes(stages, x, parts, add, divisor, {0, search.levels, 0}, search.guarded ? Coding::nearest : Coding::wrapped,
              codes);
  put_codes(type, codes, out);
  if (type == GgmlType::q2_k) {
    std::memcpy(out, packed, 16);
    out += 80;
  } else {
    std::memcpy(out + 4, packed, 12);
  }
  store_u16(d, out);
  store_u16(d_min, out + 2);
}

/// q3_k's scales under importance: a search for the scale of scales. Returns d.
float fit_scales_q3(const Stages& stages, const Parts& parts, uint8_t* codes) {
  bool is_finite = true;
  for (const float scale : parts.scale) is_finite &= std::isfinite(scale);
  if (is_finite) {
    float x[kMaxParts * kSearchWidth] = {}, weight[kMaxParts * kSearchWidth] = {};
    std::memcpy(x, parts.scale, sizeof parts.scale);
    std::memcpy(weight, parts.weight, sizeof parts.weight);
    SearchResult result;
    stages.symmetric({x, kMaxParts, Weighting::given, weight, nullptr}, 32, result);
    uint8_t padded[32];
    stages.codes(Coding::nearest, x, 32, 32, result.add, result.factor, {-32, 31, 32}, padded);
    for (size_t i = 0; i < kMaxParts; ++i) codes[i] = result.is_empty[0] ? 0 : padded[i];
    return result.scale[0];
  }
  // The sums overflowed: every comparison of the search is false on NaN, so its first scale stays.
  const float largest = largest_of(parts.scale, kMaxParts);
  std::memset(codes, 0, kMaxParts);
  if (std::fabs(largest) < kEmptyBelow) return 0;
  float sum_xl = 0, sum_l2 = 0;
  for (size_t i = 0; i < kMaxParts; ++i) {
    const int32_t nearest = nearest_int(-32 / largest * parts.scale[i]);
    const int32_t bounded = nearest < -32 ? -32 : nearest > 31 ? 31 : nearest;
    const auto code = static_cast<float>(bounded);
    codes[i] = byte_of(bounded + 32);
    sum_xl += parts.weight[i] * parts.scale[i] * code;
    sum_l2 += parts.weight[i] * code * code;
  }
  return sum_l2 != 0 ? sum_xl / sum_l2 : 0;
}

void store_q3_k(const Stages& stages, const float* x, const float* importance, uint8_t* out) {
  Parts parts(16);
  uint8_t codes[kSuperBlock], own_codes[kSuperBlock], scales[kMaxParts] = {};
  const Weighting weighting = importance ? Weighting::given_energy : Weighting::square;
  for_each_eight(x, importance, 16, weighting, 2, [&](const SearchInput& in, size_t at) {
    if (!importance) return stages.descent(in.x, parts.scale + at, own_codes + at * 16);
    SearchResult result;
    stages.symmetric(in, 4, result);
    parts.take(at, result);
  });
  float d = 0;
  if (importance) {
    d = fit_scales_q3(stages, parts, scales);
  } else if (const float largest = largest_of(parts.scale, kMaxParts); largest != 0) {
    const float inverse = -32 / largest;
    d = 1 / inverse;
    for (size_t i = 0; i < kMaxParts; ++i) {
      const int32_t scale = static_cast<int8_t>(nearest_int(inverse * parts.scale[i]));
      scales[i] = byte_of((scale < -32 ? -32 : scale > 31 ? 31 : scale) + 32);
    }
  }
  const uint16_t stored_d = half_of(d);
  uint8_t* const stored_scales = out + 96;
  pack_scales_k3(scales, stored_scales);
  unpack_scales_k3(stored_scales, scales);
  float divisor[kMaxParts], add[kMaxParts] = {};
  for (size_t i = 0; i < kMaxParts; ++i) divisor[i] = from_half(stored_d) * static_cast<float>(scales[i] - 32);
  const CodeRange range = {-4, 3, 4};
  if (importance) {
    final_codes(stages, x, parts, add, divisor, range, Coding::nearest, codes);
  } else {
    stages.codes(Coding::divided, x, kSuperBlock, 16, add, divisor, range, codes);
    for (size_t i = 0; i < kMaxParts; ++i)
      if (divisor[i] == 0) std::memcpy(codes + i * 16, own_codes + i * 16, 16);
  }
  put_codes(GgmlType::q3_k, codes, out);
  store_u16(stored_d, out + 108);
}

void store_q6_k(const Stages& stages, const float* x, const float* importance, uint8_t* out) {
  Parts parts(16);
  for_each_eight(x, importance, 16, importance ? Weighting::given : Weighting::square, 0,
                 [&](const SearchInput& in, size_t at) {
                   SearchResult result;
                   stages.symmetric(in, 32, result);
                   parts.take(at, result);
                 });
  const float largest = largest_of(parts.scale, kMaxParts);
  if (std::fabs(largest) < kEmptyBelow) {
    std::memset(out, 0, 210);
    return;
  }
  const float inverse = -128 / largest;
  const uint16_t d = half_of(1 / inverse);
  float divisor[kMaxParts], add[kMaxParts] = {};
  uint8_t codes[kSuperBlock];
  for (size_t i = 0; i < kMaxParts; ++i) {
    const int32_t nearest = nearest_int(inverse * parts.scale[i]);
    const auto scale = static_cast<int8_t>(nearest < 127 ? nearest : 127);
    out[192 + i] = byte_of(scale);
    divisor[i] = from_half(d) * scale;
  }
  final_codes(stages, x, parts, add, divisor, {-32, 31, 32}, Coding::nearest, codes);
  put_codes(GgmlType::q6_k, codes, out);
  store_u16(d, out + 208);
}

void store_iq4_xs(const Stages& stages, const float* x, const float* importance, uint8_t* out) {
  float scale[kSearchWidth], inverse[kSearchWidth];
  for_each_eight(x, importance, 32, importance ? Weighting::given_energy : Weighting::square, 2,
                 [&](const SearchInput& in, size_t) { stages.iq4(in, scale); });
  const float d = -largest_of(scale, kSearchWidth) / 32, inverse_d = d != 0 ? 1 / d : 0;
  uint8_t scales[kSearchWidth];
  for (size_t i = 0; i < kSearchWidth; ++i) {
    const int32_t nearest = nearest_int(inverse_d * scale[i]);
    const int32_t level = nearest < -32 ? -32 : nearest > 31 ? 31 : nearest;
    const float part = d * static_cast<float>(level);
    inverse[i] = part != 0 ? 1 / part : 0;
    scales[i] = byte_of(level + 32);
  }
  uint8_t codes[kSuperBlock];
  stages.codes_iq4(x, kSuperBlock, 32, inverse, codes);
  store_u16(half_of(d), out);
  pack_scales_iq4(scales, out + 2);
  put_codes(GgmlType::iq4_xs, codes, out);
}

void store_ternary(const Stages& stages, GgmlType type, const float* x, uint8_t* out) {
  float low[kSearchWidth], high[kSearchWidth], d = 0;
  stages.extents(x, kSearchWidth, low, high);
  for (size_t i = 0; i < kSearchWidth; ++i) {
    const float magnitude = std::fabs(high[i] > -low[i] ? high[i] : low[i]);
    d = magnitude > d ? magnitude : d;
  }
  float inverse = d != 0 ? 1 / d : 0;
  if (std::isinf(inverse)) inverse = 0;  // ggml converts infinity and NaN to code 1, too
  const float add = 0;
  uint8_t codes[kSuperBlock];
  stages.codes(Coding::away, x, kSuperBlock, kSuperBlock, &add, &inverse, {0, 0, 1}, codes);
  put_codes(type, codes, out);
  store_u16(half_of(d), out + (type == GgmlType::tq1_0 ? 52 : 64));
}

}  // namespace

void store_super_block(const Stages& stages, GgmlType type, const float* x, const float* importance,
                       uint8_t* out) noexcept {
  switch (type) {
    case GgmlType::q3_k:
      return store_q3_k(stages, x, importance, out);
    case GgmlType::q6_k:
      return store_q6_k(stages, x, importance, out);
    case GgmlType::iq4_xs:
      return store_iq4_xs(stages, x, importance, out);
    case GgmlType::tq1_0:
    case GgmlType::tq2_0:
      return store_ternary(stages, type, x, out);
    case GgmlType::iq2_xxs:
    case GgmlType::iq2_xs:
    case GgmlType::iq2_s:
    case GgmlType::iq3_xxs:
    case GgmlType::iq3_s:
      return store_signed_block(type, x, importance, out);
    case GgmlType::iq1_s:
    case GgmlType::iq1_m:
      return store_ternary_codebook_block(type, x, importance, out);
    default:
      return store_affine(stages, type, x, importance, out);
  }
}

}  // namespace wasmquant::kernels
