// Bit streams and nibbles: identity over every length and width, layouts written out by hand, nothing beyond the end.
#include <doctest/doctest.h>

#include <cstddef>
#include <random>
#include <vector>

#include "packing/packing.h"
#include "packing/random_codes.h"

using namespace wasmquant::packing;
using test_packing::random_codes;
using Bytes = std::vector<uint8_t>;

namespace {

constexpr uint8_t kBitsGuard = 0xA5;

// The stream bit by bit.
Bytes slow_stream(const Bytes& codes, uint32_t bits) {
  Bytes bytes(static_cast<size_t>(bit_stream_bytes(codes.size(), bits)), 0);
  for (size_t i = 0; i < codes.size() * bits; ++i)
    if (codes[i / bits] >> (i % bits) & 1) bytes[i / 8] = static_cast<uint8_t>(bytes[i / 8] | 1u << (i % 8));
  return bytes;
}

}  // namespace

TEST_CASE("bit streams: every length and width against the stream bit by bit, and back") {
  for (uint32_t bits = 1; bits <= 8; ++bits)
    for (size_t count = 0; count <= 70; ++count)
      for (const bool is_signed : {false, true}) {
        CAPTURE(bits);
        CAPTURE(count);
        CAPTURE(is_signed);
        const Bytes codes = random_codes(count, bits, is_signed, static_cast<uint32_t>(bits * 1000 + count));
        const auto size = static_cast<size_t>(bit_stream_bytes(count, bits));
        Bytes packed(size + 8, kBitsGuard);
        pack_bits(codes, bits, packed.data());
        CHECK(Bytes(packed.begin() + static_cast<std::ptrdiff_t>(size), packed.end()) == Bytes(8, kBitsGuard));
        packed.resize(size);
        CHECK(packed == slow_stream(codes, bits));

        Bytes unpacked(count + 8, kBitsGuard);
        unpack_bits(packed, count, bits, is_signed, unpacked.data());
        CHECK(Bytes(unpacked.begin() + static_cast<std::ptrdiff_t>(count), unpacked.end()) == Bytes(8, kBitsGuard));
        unpacked.resize(count);
        CHECK(unpacked == codes);
      }
}

TEST_CASE("int3: eight codes in three bytes, the first in the low bits") {
  // 1 2 3 -4 -1 0 0 -1 = 001 010 011 100 111 000 000 111; byte 0 = 11 010 001, byte 1 = 0 111 100 0, byte 2 = 111 000
  // 00
  const Bytes codes = {1, 2, 3, 0xFC, 0xFF, 0, 0, 0xFF};
  Bytes packed(3);
  pack_bits(codes, 3, packed.data());
  CHECK(packed == Bytes{0xD1, 0x78, 0xE0});
}

TEST_CASE("nibbles: the first code in the low nibble, an odd last code in a byte without a partner") {
  const Bytes codes = {0x1, 0xFF, 0x7, 0xF8, 0x3};  // 1 -1 7 -8 3
  Bytes packed(4, kBitsGuard);
  pack_nibbles(codes, packed.data());
  CHECK(packed == Bytes{0xF1, 0x87, 0x03, kBitsGuard});
  Bytes unpacked(5);
  unpack_nibbles({packed.data(), 3}, 5, true, unpacked.data());
  CHECK(unpacked == codes);
  unpack_nibbles({packed.data(), 3}, 5, false, unpacked.data());
  CHECK(unpacked == Bytes{0x1, 0xF, 0x7, 0x8, 0x3});
}

TEST_CASE("nibbles: every length equals the 4-bit stream") {
  for (size_t count = 0; count <= 70; ++count) {
    const Bytes codes = random_codes(count, 4, true, static_cast<uint32_t>(count));
    Bytes packed((count + 1) / 2);
    pack_nibbles(codes, packed.data());
    CHECK(packed == slow_stream(codes, 4));
    Bytes unpacked(count);
    unpack_nibbles(packed, count, true, unpacked.data());
    CHECK(unpacked == codes);
  }
}
