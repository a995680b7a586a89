// Nearest values of whole numbers and of tables, column by column, and the places of codes in each type's blocks.
#include "kernels/ggml/ggml_grid.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/ggml/ggml_layout.h"
#include "kernels/ggml/ggml_scales.h"
#include "kernels/ggml_stages.h"
#include "numeric/half.h"

namespace wasmquant::kernels {
namespace {

/// Codes of whole numbers: level + offset for each level in [low, high].
struct WholeLevels {
  float low, high;
  int32_t offset;
};
WholeLevels levels_of(GgmlType type) {
  switch (type) {
    case GgmlType::q8_0:
      return {-127, 127, 0};
    case GgmlType::q4_0:
      return {-8, 7, 8};
    case GgmlType::q5_0:
      return {-16, 15, 16};
    case GgmlType::q2_k:
      return {0, 3, 0};
    case GgmlType::q3_k:
      return {-4, 3, 4};
    case GgmlType::q6_k:
      return {-32, 31, 32};
    case GgmlType::q5_1:
    case GgmlType::q5_k:
      return {0, 31, 0};
    case GgmlType::tq1_0:
    case GgmlType::tq2_0:
      return {-1, 1, 1};
    case GgmlType::q2_0:
      return {-1, 2, 1};
    default:  // q4_1, q4_k
      return {0, 15, 0};
  }
}

const int8_t* table_of(GgmlType type) {
  if (type == GgmlType::mxfp4 || type == GgmlType::nvfp4) return kFp4Doubled;
  return type == GgmlType::iq4_nl || type == GgmlType::iq4_xs ? kIq4Values : nullptr;
}

/// The multiple of a unit that a scale of 256 elements is stored as.
int32_t step_of(GgmlType type, float scale, float unit) {
  const float least = type == GgmlType::q6_k ? -128.0f : has_minima(type) ? 0.0f : -32.0f;
  const float most = type == GgmlType::q6_k   ? 127.0f
                     : type == GgmlType::q2_k ? 15.0f
                     : has_minima(type)       ? 63.0f
                                              : 31.0f;
  const float step = unit != 0 ? scale / unit : 0.0f;
  return nearest_int(step < least ? least : step < most ? step : most);
}

constexpr size_t kBatch = 64;

void nearest_of_table(const int8_t* table, const float* scale, size_t count, float* x, uint8_t* codes) {
  float least[kBatch], nearest[kBatch];
  for (size_t i = 0; i < count; ++i) {
    least[i] = std::numeric_limits<float>::infinity();
    nearest[i] = codes[i] = 0;
  }
  for (uint8_t code = 0; code < 16; ++code)
    for (size_t i = 0; i < count; ++i) {
      const float value = scale[i] * table[code], distance = std::fabs(x[i] - value);
      const bool is_nearer = distance < least[i];
      least[i] = is_nearer ? distance : least[i];
      nearest[i] = is_nearer ? value : nearest[i];
      codes[i] = is_nearer ? code : codes[i];
    }
  std::memcpy(x, nearest, count * sizeof(float));
}

}  // namespace

void nearest_codes(GgmlType type, const float* scale, const float* minimum, size_t count, float* x,
                   uint8_t* codes) noexcept {
  if (const int8_t* const table = table_of(type)) {
    for (size_t at = 0; at < count; at += kBatch)
      nearest_of_table(table, scale + at, std::min(kBatch, count - at), x + at, codes + at);
    return;
  }
  if (type == GgmlType::q1_0) {
    for (size_t i = 0; i < count; ++i) {
      codes[i] = (x[i] < 0) == (scale[i] < 0);
      x[i] = codes[i] ? scale[i] : -scale[i];
    }
    return;
  }
  const WholeLevels levels = levels_of(type);
  for (size_t i = 0; i < count; ++i) {
    float position = scale[i] != 0 ? (x[i] + minimum[i]) / scale[i] : 0.0f;
    position = position > levels.low ? position : levels.low;
    const int32_t level = nearest_int(position < levels.high ? position : levels.high);
    codes[i] = byte_of(level + levels.offset);
    x[i] = scale[i] * static_cast<float>(level) - minimum[i];
  }
}

bool has_free_scales(GgmlType type) noexcept {
  return type != GgmlType::mxfp4 && type != GgmlType::nvfp4 && type != GgmlType::tq1_0 && type != GgmlType::tq2_0;
}

bool has_minima(GgmlType type) noexcept {
  return type == GgmlType::q4_1 || type == GgmlType::q5_1 || type == GgmlType::q2_k || type == GgmlType::q4_k ||
         type == GgmlType::q5_k;
}

float storable_scale(GgmlType type, float wanted, float unit) noexcept {
  if (info_of(type).block != kSuperBlock) return from_half(half_of(wanted));
  return unit == 0 ? 0.0f : unit * static_cast<float>(step_of(type, wanted, unit));
}

float storable_minimum(GgmlType type, float wanted, float unit) noexcept {
  if (info_of(type).block != kSuperBlock) return -from_half(half_of(-wanted));
  return storable_scale(type, wanted, unit);  // of the types with both, minima have the same range
}

void put_scales(GgmlType type, const BlockGrid& grid, uint8_t* block) noexcept {
  if (info_of(type).block != kSuperBlock) {
    store_u16(half_of(grid.scale[0]), block);
    if (has_minima(type)) store_u16(half_of(-grid.minimum[0]), block + 2);
    return;
  }
  uint8_t scales[16], minima[16];
  for (size_t i = 0; i < kSuperBlock / grid.run; ++i) {
    scales[i] = byte_of(step_of(type, grid.scale[i], grid.unit));
    minima[i] = byte_of(step_of(type, grid.minimum[i], grid.minimum_unit));
  }
  switch (type) {
    case GgmlType::q2_k:
      for (size_t i = 0; i < 16; ++i) block[i] = static_cast<uint8_t>(scales[i] | minima[i] << 4);
      return;
    case GgmlType::q3_k:
      for (uint8_t& scale : scales) scale = byte_of(scale + 32);
      return pack_scales_k3(scales, block + 96);
    case GgmlType::q6_k:
      std::memcpy(block + 192, scales, 16);
      return;
    case GgmlType::iq4_xs:
      for (uint8_t& scale : scales) scale = byte_of(scale + 32);
      return pack_scales_iq4(scales, block + 2);
    default:  // q4_k, q5_k
      return pack_scales_k4(scales, minima, block + 4);
  }
}

void put_codes(GgmlType type, const uint8_t* codes, uint8_t* block) noexcept {
  const bool has_minimum = type == GgmlType::q4_1 || type == GgmlType::q5_1;
  switch (type) {
    case GgmlType::q8_0:
      std::memcpy(block + 2, codes, 32);
      return;
    case GgmlType::q5_0:
    case GgmlType::q5_1:
      pack_fifth_bits(codes, block + (has_minimum ? 4 : 2));
      return pack_planes<kHalves>(codes, block + (has_minimum ? 8 : 6));
    case GgmlType::q2_k:
      return pack_planes<kCrumbs>(codes, block + 16);
    case GgmlType::q3_k:
      pack_planes<kThirdBits>(codes, block);
      return pack_planes<kCrumbs>(codes, block + 32);
    case GgmlType::q5_k:
      pack_planes<kFifthBits>(codes, block + 16);
      return pack_planes<kNibbles>(codes, block + 48);
    case GgmlType::q4_k:
      return pack_planes<kNibbles>(codes, block + 16);
    case GgmlType::q6_k:
      pack_planes<kQuarterNibbles>(codes, block);
      return pack_planes<kSixthBits>(codes, block + 128);
    case GgmlType::iq4_xs:
      for (size_t i = 0; i < kSearchWidth; ++i) pack_planes<kHalves>(codes + 32 * i, block + 8 + 16 * i);
      return;
    case GgmlType::tq1_0:
      return pack_trits(codes, block);
    case GgmlType::tq2_0:
      return pack_planes<kCrumbs>(codes, block);
    case GgmlType::mxfp4:
      return pack_planes<kHalves>(codes, block + 1);
    case GgmlType::nvfp4:
      return pack_planes<kNvfp4>(codes, block + 4);
    case GgmlType::q1_0:
      return pack_planes<kSigns>(codes, block + 2);
    case GgmlType::q2_0:
      return pack_planes<kPairs>(codes, block + 2);
    default:  // q4_0, q4_1, iq4_nl
      return pack_planes<kHalves>(codes, block + (has_minimum ? 4 : 2));
  }
}

}  // namespace wasmquant::kernels
