// Eight codes at a time, inside 64-bit words.
//   octet:  byte k = code k                        (8 bytes, the unpacked form)
//   stream: bits k*Bits .. k*Bits + Bits-1 = code k (Bits bytes, least significant first)
// Three halvings convert one to the other: bytes to pairs in 16 bits, quads in 32, all eight in 64. There are no tables
// and no lanes, so the loops around it need no SIMD.
// Always inline: files compiled for size and for speed share these loops, and the linker keeps one copy of a function.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace wasmquant::packing {

static_assert(std::endian::native == std::endian::little, "words are loaded and stored as they lie in memory");

/// The same byte, or 16-bit or 32-bit field, in every place of a 64-bit word.
constexpr uint64_t in_each_byte(uint64_t v) { return v * 0x0101010101010101u; }
constexpr uint64_t in_each_16(uint64_t v) { return v * 0x0001000100010001u; }
constexpr uint64_t in_each_32(uint64_t v) { return v * 0x0000000100000001u; }

/// The low `bits` bits, bits 0..63.
constexpr uint64_t low_mask(uint32_t bits) { return (uint64_t{1} << bits) - 1; }

/// Bytes added modulo 256, no carry from one to the next.
[[gnu::always_inline]] constexpr uint64_t add_bytes(uint64_t a, uint64_t b) {
  constexpr uint64_t kTop = in_each_byte(0x80);
  return ((a & ~kTop) + (b & ~kTop)) ^ ((a ^ b) & kTop);
}

/// Octet to stream; bits of a code above `Bits` are dropped.
template <uint32_t Bits>
[[gnu::always_inline]] constexpr uint64_t to_stream(uint64_t w) {
  constexpr uint64_t kCode = in_each_16(low_mask(Bits)), kPair = in_each_32(low_mask(2 * Bits)),
                     kQuad = low_mask(4 * Bits);
  w = (w & kCode) | ((w >> 8 & kCode) << Bits);
  w = (w & kPair) | ((w >> 16 & kPair) << (2 * Bits));
  return (w & kQuad) | ((w >> 32 & kQuad) << (4 * Bits));
}

/// Stream to octet, codes unsigned.
template <uint32_t Bits>
[[gnu::always_inline]] constexpr uint64_t to_octet(uint64_t v) {
  constexpr uint64_t kCode = in_each_16(low_mask(Bits)), kPair = in_each_32(low_mask(2 * Bits)),
                     kQuad = low_mask(4 * Bits);
  v = (v & kQuad) | ((v >> (4 * Bits) & kQuad) << 32);
  v = (v & kPair) | ((v >> (2 * Bits) & kPair) << 16);
  return (v & kCode) | ((v >> Bits & kCode) << 8);
}

/// Unsigned codes of `Bits` bits to two's complement bytes: (v ^ s) - s with s = 2^(Bits-1).
template <uint32_t Bits>
[[gnu::always_inline]] constexpr uint64_t extend_sign(uint64_t octet) {
  constexpr uint64_t kSign = uint64_t{1} << (Bits - 1);
  return add_bytes(octet ^ in_each_byte(kSign), in_each_byte((0x100 - kSign) & 0xFF));
}

/// Up to 8 bytes as the low end of a word, zeros above.
[[gnu::always_inline]] inline uint64_t load_low(const uint8_t* in, size_t count) noexcept {
  uint64_t w = 0;
  std::memcpy(&w, in, count);
  return w;
}

/// Packs codes, plus `offset` each, into ceil(count * Bits / 8) bytes; unused bits of the last byte are zero.
template <uint32_t Bits>
void pack_run(const uint8_t* codes, size_t count, uint32_t offset, uint8_t* bytes) noexcept {
  const uint64_t offsets = in_each_byte(offset & 0xFF);
  size_t done = 0;
  for (; done + 8 <= count; done += 8, bytes += Bits) {
    const uint64_t stream = to_stream<Bits>(add_bytes(load_low(codes + done, 8), offsets));
    std::memcpy(bytes, &stream, Bits);
  }
  if (const size_t rest = count - done; rest != 0) {
    const uint64_t octet = add_bytes(load_low(codes + done, rest), offsets) & low_mask(static_cast<uint32_t>(8 * rest));
    const uint64_t stream = to_stream<Bits>(octet);
    std::memcpy(bytes, &stream, (rest * Bits + 7) / 8);
  }
}

/// Undoes pack_run. Signed codes come back as two's complement bytes.
template <uint32_t Bits, bool Signed>
void unpack_run(const uint8_t* bytes, size_t count, uint32_t offset, uint8_t* codes) noexcept {
  const uint64_t offsets = in_each_byte((0x100 - (offset & 0xFF)) & 0xFF);
  const auto restore = [offsets](uint64_t stream) {
    const uint64_t octet = add_bytes(to_octet<Bits>(stream), offsets) & in_each_byte(low_mask(Bits));
    return Signed ? extend_sign<Bits>(octet) : octet;
  };
  size_t done = 0;
  for (; done + 8 <= count; done += 8, bytes += Bits) {
    const uint64_t octet = restore(load_low(bytes, Bits));
    std::memcpy(codes + done, &octet, 8);
  }
  if (const size_t rest = count - done; rest != 0) {
    const uint64_t octet = restore(load_low(bytes, (rest * Bits + 7) / 8));
    std::memcpy(codes + done, &octet, rest);
  }
}

}  // namespace wasmquant::packing
