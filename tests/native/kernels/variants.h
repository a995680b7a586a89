// Every instruction set of this build times every run length and start that can go wrong, for the kernel tests.
#pragma once
#include <doctest/doctest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "kernels/arch.h"
#include "kernels/reference/reference.h"

namespace wasmquant::kernels {

/// Runs `test` on each available instruction set, then returns to the one before.
template <class Test>
void for_each_arch(Test&& test) {
  const Simd before = active_arch();
  for (Simd arch : available_archs()) {
    REQUIRE(force_arch(arch));
    INFO("arch " << std::string(name_of(arch)));
    test();
  }
  REQUIRE(force_arch(before));
}

/// 0 .. two widest steps + 1 (a step is 32 elements on AVX2, 64 for nibbles), and lengths around the error block.
inline std::vector<size_t> lengths() {
  std::vector<size_t> all;
  for (size_t n = 0; n <= 65; ++n) all.push_back(n);
  for (size_t n : {127, 128, 129, 1000, 1023, 1024, 1025, 4096}) all.push_back(n);
  return all;
}

template <class Test>
void for_each_arch_and_length(Test&& test) {
  for_each_arch([&] {
    for (size_t n : lengths()) {
      for (size_t offset : {0, 1, 2, 3}) {  // in elements: starts that no register is aligned to
        INFO("length " << n << ", offset " << offset);
        test(n, offset);
      }
    }
  });
}

/// An output buffer with guards before and behind; bit-exact comparison.
template <class T>
class Output {
 public:
  Output(size_t count, size_t offset)
      : count_(count), offset_(offset), bytes_((kGuard + offset + count + kGuard) * sizeof(T), 0xA5) {}
  T* data() { return reinterpret_cast<T*>(bytes_.data()) + kGuard + offset_; }
  const T* data() const { return reinterpret_cast<const T*>(bytes_.data()) + kGuard + offset_; }
  bool operator==(const Output& other) const {
    return count_ == other.count_ && std::memcmp(data(), other.data(), count_ * sizeof(T)) == 0;
  }
  bool guards_are_whole() const {
    const size_t begin = (kGuard + offset_) * sizeof(T), end = begin + count_ * sizeof(T);
    for (size_t i = 0; i < bytes_.size(); ++i)
      if ((i < begin || i >= end) && bytes_[i] != 0xA5) return false;
    return true;
  }

 private:
  static constexpr size_t kGuard = 64 / sizeof(T);
  size_t count_, offset_;
  std::vector<uint8_t> bytes_;
};

/// Runs kernel and oracle into guarded outputs of `count` and compares every bit.
template <class T, class Kernel, class Oracle>
void check_same(size_t count, size_t offset, Kernel&& kernel, Oracle&& oracle) {
  Output<T> actual(count, offset), expected(count, offset);
  kernel(actual.data());
  oracle(expected.data());
  REQUIRE(actual.guards_are_whole());
  REQUIRE(actual == expected);
}

inline float float_of(uint32_t bits) { return std::bit_cast<float>(bits); }

/// Numbers that break kernels: zeros, infinities, NaN of both signs and with payload, subnormals, the ends of the
/// range, ties of every small integer, and their neighbours.
inline std::vector<float> special_values() {
  constexpr float kInf = std::numeric_limits<float>::infinity(), kMax = std::numeric_limits<float>::max();
  std::vector<float> all = {0.0f, -0.0f, kInf, -kInf, kMax, -kMax, 1e30f, -1e30f, 1e10f, -1e10f};
  for (uint32_t bits : {0x7FC00000u, 0xFFC00000u, 0x7FC12345u, 0xFFFFFFFFu, 0x7F800001u, 0xFF800001u, 0x00000001u,
                        0x80000001u, 0x007FFFFFu, 0x807FFFFFu, 0x00800000u, 0x80800000u})
    all.push_back(float_of(bits));
  for (float magnitude :
       {0.25f,    0.5f,     1.5f,     2.5f,   3.5f,   126.5f,   127.5f,   128.5f,   254.5f,   255.5f,  32766.5f,
        32767.5f, 65534.5f, 65535.5f, 448.0f, 464.0f, 57344.0f, 61440.0f, 65504.0f, 65519.0f, 65520.0f}) {
    for (float v : {magnitude, std::nextafter(magnitude, 0.0f), std::nextafter(magnitude, kInf)}) {
      all.push_back(v);
      all.push_back(-v);
    }
  }
  return all;
}

enum class Content { finite, with_specials };

/// `count` floats from a fixed generator: bell-shaped around zero at several magnitudes, with ties and, if asked,
/// special values every few elements. `salt` gives other numbers.
inline std::vector<float> test_values(size_t count, Content content, uint32_t salt = 0) {
  static const std::vector<float> specials = special_values();
  uint32_t state = 2463534242u + salt * 7919u;
  const auto next = [&state] {
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return state;
  };
  std::vector<float> x(count);
  for (float& v : x) {
    const float unit = static_cast<float>(static_cast<int32_t>(next())) * 0x1p-31f;
    switch (next() % 8) {
      case 0:
        v = std::floor(unit * 300.0f) + 0.5f;
        break;
      case 1:
        v = unit * 1e-3f;
        break;
      case 2:
        v = content == Content::with_specials ? specials[next() % specials.size()] : unit;
        break;
      case 3:
        v = unit * 1e5f;
        break;
      default:
        v = unit * 200.0f;
    }
  }
  return x;
}

}  // namespace wasmquant::kernels
