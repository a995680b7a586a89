// One case of any kernel: shape, start, run length, grids and values from the input, special values among them. Every
// instruction set of the machine must give what the scalar oracle gives, bit for bit, and write nothing beside it.
#pragma once
#include <bit>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "choices.h"
#include "core/list.h"
#include "digest.h"
#include "kernels/arch.h"
#include "kernels/exponential.h"
#include "kernels/kernels.h"
#include "kernels/matmul.h"
#include "kernels/reference/reference.h"
#include "kernels/reference/reference_search.h"
#include "kernels/search.h"

namespace wasmquant::fuzz {

/// Runs one case; aborts when an instruction set differs from the oracle. The digest of what the oracle gave.
class KernelCase {
 public:
  explicit KernelCase(std::span<const uint8_t> input) : choose_(input) {}

  uint64_t run() {
    static constexpr void (KernelCase::*kCases[])() = {
        &KernelCase::reduce,         &KernelCase::quantize_int, &KernelCase::quantize_int_each,
        &KernelCase::divide,         &KernelCase::minifloat,    &KernelCase::block_float,
        &KernelCase::casts,          &KernelCase::nibbles,      &KernelCase::product,
        &KernelCase::exponentials,   &KernelCase::error_sums,   &KernelCase::search,
        &KernelCase::half_quadratic, &KernelCase::bins};
    const auto which = choose_.below(std::size(kCases));
    count_ = choose_.below(choose_.flag() ? 1300 : 96);
    offset_ = choose_.below(5);
    run_length_ = choose_.flag() ? 1 + choose_.below(80) : 1 << 20;
    digest_.add(which);
    (this->*kCases[which])();
    return digest_.value();
  }

 private:
  static constexpr size_t kGuard = 32;

  /// `count_` numbers that begin at no aligned place.
  std::vector<float> numbers(bool any) {
    std::vector<float> all(count_ + offset_);
    for (float& v : all) v = choose_.number(any);
    return all;
  }
  template <class T>
  std::span<const T> start(const std::vector<T>& all) const {
    return std::span(all).subspan(offset_);
  }
  size_t runs() const { return count_ == 0 ? 1 : (count_ - 1) / run_length_ + 1; }
  /// 2^(1 - powers) .. 2.
  float small_scale(uint32_t powers) {
    const float fraction = 1.0f + static_cast<float>(choose_.byte()) / 256.0f;
    return std::ldexp(fraction, -static_cast<int>(choose_.below(powers)));
  }
  kernels::Affine grid() {
    const bool is_signed = choose_.flag(), whole = choose_.below(4) != 0;
    const int bits = 2 + static_cast<int>(choose_.below(7));
    const float low = is_signed ? -std::ldexp(1.0f, bits - 1) : 0, high = low + std::ldexp(1.0f, bits) - 1;
    const float scale = choose_.scale(), zero = low + static_cast<float>(choose_.byte() % (1 << bits));
    return {scale, 1.0f / std::fmax(scale, 0x1p-126f), whole ? zero : zero + 0.375f, low, high};
  }

  /// `fill(T*)` by the kernel, on each instruction set, and by the oracle.
  template <class T, class Kernel, class Oracle>
  void same(size_t count, Kernel&& kernel, Oracle&& oracle) {
    std::vector<T> expected(count);
    oracle(expected.data());
    Digest wanted;
    wanted.add(expected);
    std::vector<T> actual(count + 2 * kGuard + offset_);
    for (const kernels::Simd arch : kernels::available_archs()) {
      if (!kernels::force_arch(arch)) std::abort();
      std::memset(actual.data(), 0xA5, actual.size() * sizeof(T));
      T* first = actual.data() + kGuard + offset_;
      kernel(first);
      Digest found;
      found.add(std::vector<T>(first, first + count));
      if (!(found == wanted)) std::abort();
      T guard;
      std::memset(&guard, 0xA5, sizeof guard);
      for (T* at = actual.data(); at < actual.data() + actual.size(); ++at)
        if ((at < first || at >= first + count) && std::memcmp(at, &guard, sizeof guard) != 0) std::abort();
    }
    digest_.add(wanted.value());
  }
  /// The same for a single answer, told to a digest.
  template <class Kernel, class Oracle>
  void same_answer(Kernel&& kernel, Oracle&& oracle) {
    const auto told = [](auto&& answer) {
      Digest digest;
      answer(digest);
      return digest.value();
    };
    same<uint64_t>(
        1, [&](uint64_t* out) { *out = told(kernel); }, [&](uint64_t* out) { *out = told(oracle); });
  }

  void reduce();
  void quantize_int();
  void quantize_int_each();
  void divide();
  void minifloat();
  void block_float();
  void casts();
  void nibbles();
  void product();
  void exponentials();
  void error_sums();
  void search();
  void half_quadratic();
  void bins();

  Choices choose_;
  Digest digest_;
  size_t count_ = 0, offset_ = 0, run_length_ = 1;
};

}  // namespace wasmquant::fuzz
