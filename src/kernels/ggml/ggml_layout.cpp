#include "kernels/ggml/ggml_layout.h"

namespace wasmquant::kernels {
namespace {

/// A run of `count` bytes with `trits` codes each, `count` apart.
struct TritRun {
  uint32_t count, trits;
};
constexpr TritRun kTritRuns[] = {{32, 5}, {16, 5}, {4, 4}};

}  // namespace

void pack_fifth_bits(const uint8_t* codes, uint8_t* out) noexcept {
  for (size_t byte = 0; byte < 4; ++byte) {
    uint64_t eight;
    std::memcpy(&eight, codes + 8 * byte, 8);
    // Bit 8 j of the factor's multiplicand goes to bit 56 + j; the others stay below or overflow.
    out[byte] = static_cast<uint8_t>((eight >> 4 & 0x0101010101010101) * 0x0102040810204080 >> 56);
  }
}

void unpack_fifth_bits(const uint8_t* in, uint8_t* codes) noexcept {
  for (size_t j = 0; j < 32; ++j) codes[j] |= static_cast<uint8_t>((in[j / 8] >> (j % 8) & 1) << 4);
}

void pack_scales_k4(const uint8_t* scales, const uint8_t* minima, uint8_t* out) noexcept {
  for (size_t j = 0; j < 4; ++j) {
    const uint32_t s = scales[j + 4], m = minima[j + 4];
    out[j] = static_cast<uint8_t>(scales[j] | s >> 4 << 6);
    out[j + 4] = static_cast<uint8_t>(minima[j] | m >> 4 << 6);
    out[j + 8] = static_cast<uint8_t>((s & 15) | (m & 15) << 4);
  }
}

void unpack_scales_k4(const uint8_t* in, uint8_t* scales, uint8_t* minima) noexcept {
  for (size_t j = 0; j < 4; ++j) {
    scales[j] = in[j] & 63;
    minima[j] = in[j + 4] & 63;
    scales[j + 4] = static_cast<uint8_t>((in[j + 8] & 15) | in[j] >> 6 << 4);
    minima[j + 4] = static_cast<uint8_t>(in[j + 8] >> 4 | in[j + 4] >> 6 << 4);
  }
}

void pack_scales_k3(const uint8_t* scales, uint8_t* out) noexcept {
  std::memset(out + 8, 0, 4);
  for (size_t j = 0; j < 8; ++j) out[j] = static_cast<uint8_t>((scales[j] & 15) | (scales[j + 8] & 15) << 4);
  for (size_t j = 0; j < 16; ++j) out[8 + j % 4] |= static_cast<uint8_t>((scales[j] >> 4 & 3) << (2 * (j / 4)));
}

void unpack_scales_k3(const uint8_t* in, uint8_t* scales) noexcept {
  for (size_t j = 0; j < 16; ++j) {
    const uint32_t low = j < 8 ? in[j] & 15u : in[j - 8] >> 4, high = in[8 + j % 4] >> (2 * (j / 4)) & 3u;
    scales[j] = static_cast<uint8_t>(low | high << 4);
  }
}

void pack_scales_iq4(const uint8_t* scales, uint8_t* out) noexcept {
  uint32_t high = 0, low = 0;
  for (uint32_t i = 0; i < 8; ++i) {
    low |= (scales[i] & 15u) << (4 * i);
    high |= static_cast<uint32_t>(scales[i] >> 4) << (2 * i);
  }
  store_u16(static_cast<uint16_t>(high), out);
  store_u16(static_cast<uint16_t>(low), out + 2);
  store_u16(static_cast<uint16_t>(low >> 16), out + 4);
}

void pack_trits(const uint8_t* codes, uint8_t* out) noexcept {
  for (const TritRun& run : kTritRuns) {
    for (uint32_t j = 0; j < run.count; ++j) {
      uint32_t number = 0;
      for (uint32_t k = 0; k < 5; ++k) number = number * 3 + (k < run.trits ? codes[j + k * run.count] : 0u);
      *out++ = static_cast<uint8_t>((number * 256 + 242) / 243);
    }
    codes += run.count * run.trits;
  }
}

void unpack_trits(const uint8_t* in, uint8_t* codes) noexcept {
  for (const TritRun& run : kTritRuns) {
    uint32_t power = 1;  // moves trit k to the front; earlier ones overflow
    for (uint32_t k = 0; k < run.trits; ++k, power *= 3)
      for (uint32_t j = 0; j < run.count; ++j) *codes++ = static_cast<uint8_t>((in[j] * power & 255) * 3 >> 8);
    in += run.count;
  }
}

}  // namespace wasmquant::kernels
