// GGUF blocks to float32. Every type is unpacked to one-byte codes and runs of elements with a scale and a minimum:
// y = scale * code - minimum, two float32 operations in this order, as in ggml.
#include <array>
#include <cstring>

#include "kernels/ggml/ggml_blocks.h"
#include "kernels/ggml/ggml_codebook.h"
#include "kernels/ggml/ggml_grid.h"
#include "kernels/ggml/ggml_layout.h"
#include "kernels/ggml_stages.h"
#include "kernels/kernels.h"
#include "numeric/half.h"

namespace wasmquant::kernels {
namespace {

/// One block, unpacked. Codes are signed bytes; run i of `run` elements has scale[i] and minimum[i].
struct Unpacked {
  uint8_t codes[kSuperBlock];
  float scale[16], minimum[16];
  float unit = 0, minimum_unit = 0;  // of scales and minima
  size_t run;

  void start(size_t elements, size_t run_elements) {
    run = run_elements;
    std::memset(codes, 0, elements);
    std::memset(minimum, 0, sizeof minimum);
  }
  void move_codes(size_t elements, int32_t by) {
    for (size_t i = 0; i < elements; ++i) codes[i] = static_cast<uint8_t>(codes[i] + by);
  }
  void map_codes(size_t elements, const int8_t* values) {
    for (size_t i = 0; i < elements; ++i) codes[i] = static_cast<uint8_t>(values[codes[i] & 15]);
  }
};

float load_half(const uint8_t* in) { return from_half(load_u16(in)); }

/// 2^(byte - 128): half an e8m0 scale, for doubled values.
float half_e8m0(uint8_t byte) {
  return std::bit_cast<float>(byte < 2 ? 0x00200000u << byte : static_cast<uint32_t>(byte - 1) << 23);
}

/// Half of an unsigned e4m3 scale; 0x7F is zero.
float half_ue4m3(uint8_t byte) {
  if (byte == 0x7F) return 0;
  const uint32_t exponent = byte >> 3 & 15, mantissa = byte & 7;
  if (exponent == 0) return static_cast<float>(mantissa) * 0x1p-10f;
  return std::bit_cast<float>((exponent + 119) << 23 | mantissa << 20);
}

void unpack_simple(GgmlType type, const uint8_t* in, Unpacked& u) {
  const bool has_minimum = type == GgmlType::q4_1 || type == GgmlType::q5_1;
  const bool has_fifth_bits = type == GgmlType::q5_0 || type == GgmlType::q5_1;
  u.start(32, 32);
  u.scale[0] = load_half(in);
  in += 2;
  if (has_minimum) {
    u.minimum[0] = -load_half(in);
    in += 2;
  }
  if (has_fifth_bits) {
    unpack_fifth_bits(in, u.codes);
    in += 4;
  }
  unpack_planes<kHalves>(in, u.codes);
  if (type == GgmlType::iq4_nl)
    u.map_codes(32, kIq4Values);
  else if (!has_minimum)
    u.move_codes(32, has_fifth_bits ? -16 : -8);
}

void unpack_affine(GgmlType type, const uint8_t* in, Unpacked& u) {
  uint8_t scales[16], minima[16];
  const bool is_q2 = type == GgmlType::q2_k;
  u.start(kSuperBlock, is_q2 ? 16 : 32);
  const uint8_t* header = is_q2 ? in + 80 : in;
  const float d = load_half(header), d_min = load_half(header + 2);
  u.unit = d;
  u.minimum_unit = d_min;
  if (is_q2) {
    for (size_t i = 0; i < 16; ++i) {
      scales[i] = in[i] & 15;
      minima[i] = in[i] >> 4;
    }
    unpack_planes<kCrumbs>(in + 16, u.codes);
  } else {
    unpack_scales_k4(in + 4, scales, minima);
    in += 16;
    if (type == GgmlType::q5_k) {
      unpack_planes<kFifthBits>(in, u.codes);
      in += 32;
    }
    unpack_planes<kNibbles>(in, u.codes);
  }
  for (size_t i = 0; i < kSuperBlock / u.run; ++i) {
    u.scale[i] = d * scales[i];
    u.minimum[i] = d_min * minima[i];
  }
}

void unpack_symmetric(GgmlType type, const uint8_t* in, Unpacked& u) {
  uint8_t scales[16];
  u.start(kSuperBlock, 16);
  if (type == GgmlType::q3_k) {
    unpack_planes<kThirdBits>(in, u.codes);
    unpack_planes<kCrumbs>(in + 32, u.codes);
    unpack_scales_k3(in + 96, scales);
    const float d = u.unit = load_half(in + 108);
    for (size_t i = 0; i < 16; ++i) u.scale[i] = d * static_cast<float>(scales[i] - 32);
    u.move_codes(kSuperBlock, -4);
  } else {
    unpack_planes<kQuarterNibbles>(in, u.codes);
    unpack_planes<kSixthBits>(in + 128, u.codes);
    const float d = u.unit = load_half(in + 208);
    for (size_t i = 0; i < 16; ++i) u.scale[i] = d * static_cast<int8_t>(in[192 + i]);
    u.move_codes(kSuperBlock, -32);
  }
}

void unpack_iq4_xs(const uint8_t* in, Unpacked& u) {
  u.start(kSuperBlock, 32);
  const float d = u.unit = load_half(in);
  const uint32_t high = load_u16(in + 2);
  for (uint32_t i = 0; i < 8; ++i) {
    const uint32_t scale = (in[4 + i / 2] >> (4 * (i % 2)) & 15u) | (high >> (2 * i) & 3) << 4;
    u.scale[i] = d * static_cast<float>(static_cast<int32_t>(scale) - 32);
    unpack_planes<kHalves>(in + 8 + 16 * i, u.codes + 32 * i);
  }
  u.map_codes(kSuperBlock, kIq4Values);
}

/// tq1_0, tq2_0, q1_0 (bits: set +1, clear -1) and q2_0 (-1..2).
void unpack_few_levels(GgmlType type, const uint8_t* in, Unpacked& u) {
  const size_t elements = info_of(type).block;
  u.start(elements, elements);
  if (type == GgmlType::tq1_0) {
    unpack_trits(in, u.codes);
    u.scale[0] = load_half(in + 52);
  } else if (type == GgmlType::tq2_0) {
    unpack_planes<kCrumbs>(in, u.codes);
    u.scale[0] = load_half(in + 64);
  } else {
    u.scale[0] = load_half(in);
    if (type == GgmlType::q2_0) {
      unpack_planes<kPairs>(in + 2, u.codes);
    } else {
      unpack_planes<kSigns>(in + 2, u.codes);
      for (size_t i = 0; i < elements; ++i) u.codes[i] *= 2;
    }
  }
  u.move_codes(elements, -1);
}

void unpack_fp4(GgmlType type, const uint8_t* in, Unpacked& u) {
  if (type == GgmlType::mxfp4) {
    u.start(32, 32);
    u.scale[0] = half_e8m0(in[0]);
    unpack_planes<kHalves>(in + 1, u.codes);
    u.map_codes(32, kFp4Doubled);
    return;
  }
  u.start(64, 16);
  for (size_t i = 0; i < 4; ++i) u.scale[i] = half_ue4m3(in[i]);
  unpack_planes<kNvfp4>(in + 4, u.codes);
  u.map_codes(64, kFp4Doubled);
}

void unpack(GgmlType type, const uint8_t* in, Unpacked& u) {
  switch (type) {
    case GgmlType::q8_0:
      u.start(0, 32);
      u.scale[0] = load_half(in);
      std::memcpy(u.codes, in + 2, 32);
      return;
    case GgmlType::q2_k:
    case GgmlType::q4_k:
    case GgmlType::q5_k:
      return unpack_affine(type, in, u);
    case GgmlType::q3_k:
    case GgmlType::q6_k:
      return unpack_symmetric(type, in, u);
    case GgmlType::iq4_xs:
      return unpack_iq4_xs(in, u);
    case GgmlType::tq1_0:
    case GgmlType::tq2_0:
    case GgmlType::q1_0:
    case GgmlType::q2_0:
      return unpack_few_levels(type, in, u);
    case GgmlType::mxfp4:
    case GgmlType::nvfp4:
      return unpack_fp4(type, in, u);
    default:
      if (!has_codebook(type)) return unpack_simple(type, in, u);
      u.start(0, 0);
      u.run = unpack_codebook(type, in, u.codes, u.scale);
  }
}

/// f16 and bf16, in batches because `in` need not be aligned.
template <class Widen>
void load_halves(const uint8_t* in, uint64_t count, Widen widen, float* y) {
  uint16_t halves[1024];
  for (uint64_t at = 0; at < count; at += std::size(halves)) {
    const auto piece = static_cast<size_t>(count - at < std::size(halves) ? count - at : std::size(halves));
    std::memcpy(halves, in + 2 * at, 2 * piece);
    widen(std::span<const uint16_t>(halves, piece), y + at);
  }
}

}  // namespace

BlockGrid grid_of(GgmlType type, const uint8_t* block) noexcept {
  Unpacked u;
  BlockGrid grid;
  unpack(type, block, u);
  grid.run = u.run;
  std::memcpy(grid.scale, u.scale, info_of(type).block / u.run * sizeof(float));
  std::memcpy(grid.minimum, u.minimum, sizeof u.minimum);
  grid.unit = u.unit;
  grid.minimum_unit = u.minimum_unit;
  return grid;
}

size_t run_of(GgmlType type) noexcept {
  constexpr uint8_t zeros[292] = {};
  return grid_of(type, zeros).run;
}

void dequantize_blocks(GgmlType type, const uint8_t* blocks, uint64_t elements, float* y) noexcept {
  if (elements == 0) return;
  if (type == GgmlType::f32) {
    std::memcpy(y, blocks, static_cast<size_t>(elements * sizeof(float)));
    return;
  }
  if (type == GgmlType::f16) return load_halves(blocks, elements, widen_f16, y);
  if (type == GgmlType::bf16) return load_halves(blocks, elements, widen_bf16, y);
  const GgmlTypeInfo& info = info_of(type);
  Unpacked u;
  for (uint64_t at = 0; at < elements; at += info.block, blocks += info.block_bytes) {
    unpack(type, blocks, u);
    for (size_t run = 0; run * u.run < info.block; ++run, y += u.run) {
      const auto* codes = reinterpret_cast<const int8_t*>(u.codes) + run * u.run;
      for (size_t i = 0; i < u.run; ++i) y[i] = u.scale[run] * codes[i] - u.minimum[run];
    }
  }
}

}  // namespace wasmquant::kernels
