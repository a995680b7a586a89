#include "formats/part_name.h"

#include "core/message.h"

namespace wasmquant {
namespace {

constexpr size_t kDigits = 5;
constexpr std::string_view kOf = "-of-";

std::string digits_of(uint32_t number) {
  std::string digits;
  append_number(digits, uint64_t{number});
  return digits.size() < kDigits ? std::string(kDigits - digits.size(), '0') + digits : digits;
}

// The number in `text`, which has kDigits characters; 0 if one is no digit.
uint32_t number_in(std::string_view text) noexcept {
  uint32_t number = 0;
  for (const char digit : text) {
    if (digit < '0' || digit > '9') return 0;
    number = number * 10 + static_cast<uint32_t>(digit - '0');
  }
  return number;
}

}  // namespace

std::optional<PartName> read_part_name(std::string_view name) noexcept {
  constexpr size_t kNumbers = 1 + kDigits + kOf.size() + kDigits;
  const size_t dot = name.rfind('.');
  if (dot == name.npos || dot < kNumbers) return std::nullopt;
  const std::string_view numbers = name.substr(dot - kNumbers, kNumbers);
  if (numbers.front() != '-' || numbers.substr(1 + kDigits, kOf.size()) != kOf) return std::nullopt;
  const uint32_t number = number_in(numbers.substr(1, kDigits)), count = number_in(numbers.substr(kNumbers - kDigits));
  if (number == 0 || number > count) return std::nullopt;
  return PartName{name.substr(0, dot - kNumbers), number, count, name.substr(dot)};
}

std::string part_name(const PartName& name) {
  return text_of("{}-{}{}{}{}", name.stem, digits_of(name.number), kOf, digits_of(name.count), name.extension);
}

}  // namespace wasmquant
