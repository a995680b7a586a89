// A digest of results that must be the same on every platform (FNV-1a, 64 bits). Of NaN only that it is one counts.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <vector>

namespace wasmquant::fuzz {

class Digest {
 public:
  template <class T>
  requires std::is_arithmetic_v<T>
  void add(T value) {
    uint64_t bits;
    if constexpr (std::is_floating_point_v<T>)
      bits = std::isnan(value) ? 0x7FF8000000000000u : std::bit_cast<uint64_t>(static_cast<double>(value));
    else
      bits = static_cast<uint64_t>(value);
    for (int k = 0; k < 8; ++k) step(static_cast<uint8_t>(bits >> (8 * k)));
  }
  template <class T>
  void add(const std::vector<T>& values) {
    add(values.size());
    for (const T value : values) add(value);
  }
  void add(std::string_view text) {
    add(text.size());
    for (const char c : text) step(static_cast<uint8_t>(c));
  }
  uint64_t value() const { return state_; }
  bool operator==(const Digest&) const = default;

 private:
  void step(uint8_t byte) { state_ = (state_ ^ byte) * 0x100000001B3u; }
  uint64_t state_ = 0xCBF29CE484222325u;
};

}  // namespace wasmquant::fuzz
