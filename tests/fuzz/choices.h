// Fuzzer bytes as a series of choices. When the bytes end, the choices go on: numbers of a generator that they seed, so
// that short inputs make whole cases and every input makes the same one everywhere (compilers order the operands of an
// operator as they like: one choice in each).
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <span>

namespace wasmquant::fuzz {

class Choices {
 public:
  explicit Choices(std::span<const uint8_t> bytes) : bytes_(bytes) {
    for (const uint8_t byte : bytes) state_ = (state_ ^ byte) * 0x100000001B3u;
  }

  uint8_t byte() {
    if (at_ < bytes_.size()) return bytes_[at_++];
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return static_cast<uint8_t>(state_ >> 32);
  }
  uint32_t word() {
    uint32_t value = 0;
    for (int k = 0; k < 4; ++k) value = value << 8 | byte();
    return value;
  }
  bool flag() { return byte() & 1; }
  /// 0 .. count - 1.
  uint32_t below(uint32_t count) { return (count <= 256 ? byte() : word()) % count; }

  /// Any float32, half of the time one that breaks loops: zeros, ties, ends of ranges; NaN and infinity where allowed.
  float number(bool any) {
    static constexpr float kSpecial[] = {0.0f,     -0.0f,     0.5f,       -0.5f,     1.5f,   2.5f,     126.5f,
                                         127.5f,   -128.5f,   255.5f,     448.0f,    464.0f, 57344.0f, 65504.0f,
                                         65520.0f, 0x1p-126f, -0x1p-149f, 0x1p-127f, 1e10f,  -1e30f,   0x1.fffffep127f,
                                         6.0f,     1.0f};
    const uint8_t kind = byte();
    if (kind < 96) return kSpecial[kind % std::size(kSpecial)];
    if (kind < 192) return static_cast<float>(static_cast<int8_t>(byte())) * std::ldexp(1.0f, kind % 24 - 16);
    const float bits = std::bit_cast<float>(word());
    return any || std::isfinite(bits) ? bits : 1.0f;
  }
  /// 2^-126 .. about 2^126.
  float scale() {
    const uint8_t kind = byte();
    const float fraction = 1.0f + static_cast<float>(byte()) / 256.0f;
    return std::ldexp(fraction, kind < 200 ? kind % 40 - 24 : kind * 4 - 926);
  }

 private:
  std::span<const uint8_t> bytes_;
  size_t at_ = 0;
  uint64_t state_ = 0xCBF29CE484222325u;
};

}  // namespace wasmquant::fuzz
