// The number is the fraction N / M of two big integers; binary long division gives 64 bits and whether others follow.
#include "core/decimal.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "core/list.h"

namespace wasmquant {
namespace {

// Digits after the 800th cannot change the result unless all before them are a tie, which needs at most 767 digits;
// they count as one non-zero digit.
constexpr size_t kMaxDigits = 800;
// Decimal exponents beyond these give infinity or zero for any digits: doubles end at 1.8e308 and 4.9e-324.
constexpr int64_t kMaxExponent = 310, kMinExponent = -326;

/// Little-endian words, no zero words at the top.
class BigInteger {
 public:
  void multiply_add(uint32_t factor, uint32_t addend) {
    uint64_t carry = addend;
    for (uint32_t& word : words_) {
      carry += uint64_t{word} * factor;
      word = static_cast<uint32_t>(carry);
      carry >>= 32;
    }
    if (carry != 0) words_.push_back(static_cast<uint32_t>(carry));
  }
  void shift_left(uint64_t bits) {
    if (words_.empty()) return;
    for (; bits % 32 != 0; --bits) multiply_add(2, 0);
    List<uint32_t> shifted(bits / 32);
    shifted.append(words_.begin(), words_.end());
    words_.swap(shifted);
  }
  /// this -= other; other <= this.
  void subtract(const BigInteger& other) {
    int64_t borrow = 0;
    for (size_t i = 0; i < words_.size(); ++i) {
      borrow += int64_t{words_[i]} - (i < other.words_.size() ? other.words_[i] : 0u);
      words_[i] = static_cast<uint32_t>(borrow);
      borrow >>= 32;
    }
    while (!words_.empty() && words_.back() == 0) words_.pop_back();
  }
  bool less_than(const BigInteger& other) const {
    if (words_.size() != other.words_.size()) return words_.size() < other.words_.size();
    for (size_t i = words_.size(); i-- > 0;)
      if (words_[i] != other.words_[i]) return words_[i] < other.words_[i];
    return false;
  }
  bool is_zero() const { return words_.empty(); }
  int64_t bit_length() const {
    return words_.empty() ? 0 : static_cast<int64_t>(words_.size()) * 32 - std::countl_zero(words_.back());
  }

 private:
  List<uint32_t> words_;
};

// (mantissa + fraction of its last bit) * 2^exponent to double; `more` = the fraction is not zero.
double round_to_double(uint64_t mantissa, bool more, int64_t exponent) {
  const int64_t top = 63 - std::countl_zero(mantissa) + exponent;  // exponent of the leading bit
  // 53 bits, fewer below 2^-1022, where doubles end at 2^-1074.
  const int64_t kept = std::min<int64_t>(53, top + 1075);
  const int64_t dropped = 64 - std::countl_zero(mantissa) - kept;
  if (kept < 0) return 0.0;
  if (dropped > 0) {
    const uint64_t half = uint64_t{1} << (dropped - 1);
    const uint64_t rest = dropped == 64 ? mantissa : mantissa & ((uint64_t{1} << dropped) - 1);
    mantissa = dropped == 64 ? 0 : mantissa >> dropped;
    if (rest > half || (rest == half && (more || mantissa % 2 == 1))) ++mantissa;
    exponent += dropped;
  }
  return std::ldexp(static_cast<double>(mantissa), static_cast<int>(exponent));
}

}  // namespace

double parse_decimal(std::string_view text) {
  const bool is_negative = !text.empty() && text.front() == '-';
  const double sign = is_negative ? -1.0 : 1.0;
  BigInteger numerator, denominator;
  denominator.multiply_add(0, 1);
  int64_t exponent = 0;  // value = numerator * 10^exponent
  size_t digits = 0, at = is_negative ? 1 : 0;
  bool after_point = false, more = false;
  for (; at < text.size() && text[at] != 'e' && text[at] != 'E'; ++at) {
    if (text[at] == '.') {
      after_point = true;
      continue;
    }
    const auto digit = static_cast<uint32_t>(text[at] - '0');
    if (digits < kMaxDigits) {
      numerator.multiply_add(10, digit);
      if (digits != 0 || digit != 0) ++digits;
      exponent -= after_point ? 1 : 0;
    } else {
      more |= digit != 0;
      exponent += after_point ? 0 : 1;
    }
  }
  if (numerator.is_zero()) return sign * 0.0;
  if (at < text.size()) {
    ++at;
    const bool below = text[at] == '-';
    if (text[at] == '-' || text[at] == '+') ++at;
    int64_t written = 0;
    for (; at < text.size(); ++at) written = std::min<int64_t>(written * 10 + (text[at] - '0'), 1'000'000'000);
    exponent += below ? -written : written;
  }
  const int64_t magnitude = exponent + static_cast<int64_t>(digits);  // value < 10^magnitude
  if (magnitude > kMaxExponent) return sign * std::numeric_limits<double>::infinity();
  if (magnitude < kMinExponent) return sign * 0.0;
  for (; exponent > 0; --exponent) numerator.multiply_add(10, 0);
  for (; exponent < 0; ++exponent) denominator.multiply_add(10, 0);

  // Scale so that 1/2 < numerator / denominator < 2 and take 64 bits after the point.
  int64_t scale = numerator.bit_length() - denominator.bit_length();
  (scale > 0 ? denominator : numerator).shift_left(static_cast<uint64_t>(std::abs(scale)));
  uint64_t quotient = 0;
  for (int bit = 0; bit < 64; ++bit) {
    quotient <<= 1;
    if (!numerator.less_than(denominator)) {
      numerator.subtract(denominator);
      quotient |= 1;
    }
    numerator.multiply_add(2, 0);
  }
  return sign * round_to_double(quotient, more || !numerator.is_zero(), scale - 63);
}

}  // namespace wasmquant
