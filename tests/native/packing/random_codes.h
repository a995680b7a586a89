#pragma once
#include <cstdint>
#include <random>
#include <vector>

namespace test_packing {

/// Codes of `bits` bits as bytes: 0..2^bits-1, or two's complement when signed.
inline std::vector<uint8_t> random_codes(size_t count, uint32_t bits, bool is_signed, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<uint8_t> codes(count);
  for (uint8_t& code : codes) {
    const uint32_t value = static_cast<uint32_t>(random()) & ((1u << bits) - 1);
    code = static_cast<uint8_t>(is_signed && value >> (bits - 1) != 0 ? value | ~((1u << bits) - 1) : value);
  }
  return codes;
}

}  // namespace test_packing
