#include "kernels/hadamard.h"

#include <cmath>

#include "core/message.h"

namespace wasmquant {
namespace {

// Limit for H_K, which costs K products per value and 4 K^2 bytes.
constexpr size_t kLargestCore = 2048;

bool is_prime(size_t n) noexcept {
  for (size_t d = 2; d * d <= n; ++d)
    if (n % d == 0) return false;
  return n > 1;
}

// The smallest known K for which n / K is a power of two; 0 if there is none.
size_t core_of(size_t n) noexcept {
  size_t odd = n;
  while (odd % 2 == 0) odd /= 2;
  if (odd == 1) return 1;
  for (size_t k = 4 * odd; k <= kLargestCore && n % k == 0; k *= 2)
    if (is_prime(k - 1) || (is_prime(k / 2 - 1) && k / 2 % 4 == 2)) return k;
  return 0;
}

std::vector<float> paley(size_t k) {
  const bool is_first = is_prime(k - 1);
  const size_t q = is_first ? k - 1 : k / 2 - 1, n = q + 1;
  std::vector<float> character(q, -1);
  character[0] = 0;
  for (size_t i = 1; i < q; ++i) character[i * i % q] = 1;
  const auto conference = [&](size_t i, size_t j) -> float {
    if (i == j) return 0;
    if (i == 0) return 1;
    if (j == 0) return is_first ? -1 : 1;
    return character[(i + q - j) % q];
  };
  std::vector<float> out(k * k);
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j < n; ++j) {
      const float c = conference(i, j);
      if (is_first) {
        out[i * k + j] = i == j ? 1 : c;
        continue;
      }
      float* const square = out.data() + 2 * i * k + 2 * j;
      square[0] = square[1] = square[k] = c;
      square[k + 1] = -c;
      if (i != j) continue;
      square[0] = 1;
      square[1] = square[k] = square[k + 1] = -1;
    }
  return out;
}

// Bits of D, one after another: SplitMix64 (G. Steele, D. Lea, C. Flood 2014).
uint64_t next_random(uint64_t& state) noexcept {
  uint64_t z = state += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

}  // namespace

Result<Hadamard> Hadamard::create(size_t size, size_t block, std::optional<uint64_t> seed) {
  if (block == 0 || size == 0 || size % block != 0)
    return error_at(ErrorCode::shape_mismatch, "", "blocks of {} do not divide {} values", block, size);
  Hadamard out;
  out.size_ = size;
  out.block_ = block;
  out.core_ = core_of(block);
  if (out.core_ == 0)
    return error_at(ErrorCode::not_implemented, "",
                    "no Hadamard matrix of order {} is known here; orders are powers of two times 1, 12, 20, 28, 36 "
                    "and others that Paley's construction gives",
                    block);
  if (out.core_ > 1) out.matrix_ = paley(out.core_);
  out.column_.resize(out.core_);
  if (seed) {
    out.signs_.resize(size);
    for (float& sign : out.signs_) sign = (next_random(*seed) & 1) != 0 ? 1.0f : -1.0f;
  }
  return out;
}

void Hadamard::multiply(double* x) noexcept {
  for (size_t i = 0; i < signs_.size(); ++i) x[i] *= signs_[i];
  const size_t width = block_ / core_;
  const double factor = 1 / std::sqrt(static_cast<double>(block_));
  for (double* const end = x + size_; x < end; x += block_) {
    for (size_t half = 1; half < width; half *= 2)
      for (size_t begin = 0; begin < block_; begin += 2 * half)
        for (size_t i = begin; i < begin + half; ++i) {
          const double a = x[i], b = x[i + half];
          x[i] = a + b;
          x[i + half] = a - b;
        }
    for (size_t i = 0; core_ > 1 && i < width; ++i) {
      for (double& sum : column_) sum = 0;
      for (size_t k = 0; k < core_; ++k)
        for (size_t j = 0; j < core_; ++j) column_[j] += x[k * width + i] * matrix_[k * core_ + j];
      for (size_t j = 0; j < core_; ++j) x[j * width + i] = column_[j];
    }
    for (size_t i = 0; i < block_; ++i) x[i] *= factor;
  }
}

}  // namespace wasmquant
