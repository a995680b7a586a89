// One-byte codes in element order to and from the bits of GGUF blocks.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace wasmquant::kernels {

/// Elements of a "K" block.
inline constexpr size_t kSuperBlock = 256;

inline void store_u16(uint16_t value, uint8_t* out) noexcept {
  out[0] = static_cast<uint8_t>(value);
  out[1] = static_cast<uint8_t>(value >> 8);
}
inline uint16_t load_u16(const uint8_t* in) noexcept { return static_cast<uint16_t>(in[0] | in[1] << 8); }

/// Bit fields of `planes` runs of `stride` codes share `stride` bytes, the first run in the lowest bits:
/// byte j = field(j) | field(j + stride) << bits | ... A field is bits `shift` and up of a code. There are `groups`
/// such byte runs, one after another.
struct Planes {
  uint32_t stride, planes, bits, shift, groups;
};
inline constexpr Planes kHalves = {16, 2, 4, 0, 1};          // blocks of 32: first half low nibbles, second half high
inline constexpr Planes kNibbles = {32, 2, 4, 0, 4};         // q4_k, q5_k
inline constexpr Planes kCrumbs = {32, 4, 2, 0, 2};          // q2_k, q3_k, tq2_0
inline constexpr Planes kFifthBits = {32, 8, 1, 4, 1};       // q5_k
inline constexpr Planes kThirdBits = {32, 8, 1, 2, 1};       // q3_k
inline constexpr Planes kSixthBits = {32, 4, 2, 4, 2};       // q6_k, upper two bits
inline constexpr Planes kQuarterNibbles = {64, 2, 4, 0, 2};  // q6_k, low nibbles
inline constexpr Planes kNvfp4 = {8, 2, 4, 0, 4};            // nvfp4: halves of 16
inline constexpr Planes kSigns = {1, 8, 1, 0, 16};           // q1_0
inline constexpr Planes kPairs = {1, 4, 2, 0, 16};           // q2_0

/// Writes stride * groups bytes.
template <Planes p>
void pack_planes(const uint8_t* codes, uint8_t* out) noexcept {
  for (uint32_t g = 0; g < p.groups; ++g, out += p.stride, codes += p.stride * p.planes) {
    for (uint32_t j = 0; j < p.stride; ++j) {
      uint32_t byte = 0;
      for (uint32_t k = 0; k < p.planes; ++k)
        byte |= (codes[j + k * p.stride] >> p.shift & ((1u << p.bits) - 1)) << (k * p.bits);
      out[j] = static_cast<uint8_t>(byte);
    }
  }
}
/// ORs the fields into the codes.
template <Planes p>
void unpack_planes(const uint8_t* in, uint8_t* codes) noexcept {
  for (uint32_t g = 0; g < p.groups; ++g, in += p.stride)
    for (uint32_t k = 0; k < p.planes; ++k, codes += p.stride)
      for (uint32_t j = 0; j < p.stride; ++j)
        codes[j] |= static_cast<uint8_t>((in[j] >> (k * p.bits) & ((1u << p.bits) - 1)) << p.shift);
}

/// Bit j of 32: bit 4 of code j (q5_0, q5_1).
void pack_fifth_bits(const uint8_t* codes, uint8_t* out) noexcept;
void unpack_fifth_bits(const uint8_t* in, uint8_t* codes) noexcept;

/// q4_k and q5_k: eight 6-bit scales and minima in 12 bytes. Bytes 0-3: low six bits of scales 0-3, bytes 4-7: of
/// minima 0-3; bytes 8-11: low nibbles of scales and minima 4-7, whose upper two bits top bytes 0-3 and 4-7.
void pack_scales_k4(const uint8_t* scales, const uint8_t* minima, uint8_t* out) noexcept;
void unpack_scales_k4(const uint8_t* in, uint8_t* scales, uint8_t* minima) noexcept;

/// q3_k: sixteen 6-bit scales in 12 bytes: low nibbles of scales j and j + 8 in byte j, upper two bits of scale j at
/// bit 2 * (j / 4) of byte 8 + j % 4.
void pack_scales_k3(const uint8_t* scales, uint8_t* out) noexcept;
void unpack_scales_k3(const uint8_t* in, uint8_t* scales) noexcept;

/// iq4_xs: eight 6-bit scales in 6 bytes: upper two bits, lowest first, in two bytes, then low nibbles.
void pack_scales_iq4(const uint8_t* scales, uint8_t* out) noexcept;

/// tq1_0: codes 0, 1, 2. Five trits a byte as a fraction of 243, rounded up to a fraction of 256: byte j of the first
/// 32 holds codes j + 32 k, of the next 16 codes 160 + j + 16 k; each of the last 4 bytes holds four, 240 + j + 4 k.
void pack_trits(const uint8_t* codes, uint8_t* out) noexcept;
void unpack_trits(const uint8_t* in, uint8_t* codes) noexcept;

}  // namespace wasmquant::kernels
