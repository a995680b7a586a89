#include "formats/part_name.h"

#include "core/message.h"

namespace wasmquant {
namespace {

constexpr size_t kUsualDigits = 5;
constexpr std::string_view kOf = "-of-";

bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

std::string digits_of(uint32_t number, size_t width) {
  std::string digits;
  append_number(digits, uint64_t{number});
  return digits.size() < width ? std::string(width - digits.size(), '0') + digits : digits;
}

uint32_t number_in(std::string_view digits) noexcept {
  uint32_t number = 0;
  for (const char digit : digits) number = number * 10 + static_cast<uint32_t>(digit - '0');
  return number;
}

}  // namespace

std::optional<PartName> read_part_name(std::string_view name) noexcept {
  const size_t of = name.find(kOf, name.rfind('/') + 1);
  if (of == name.npos) return std::nullopt;
  size_t first = of, last = of + kOf.size();
  while (first > 0 && is_digit(name[first - 1])) --first;
  while (last < name.size() && is_digit(name[last])) ++last;
  const std::string_view number = name.substr(first, of - first),
                         count = name.substr(of + kOf.size(), last - of - kOf.size());
  if (number.empty() || count.empty() || number.size() > kUsualDigits || count.size() > kUsualDigits)
    return std::nullopt;
  PartName part{name.substr(0, first), number_in(number), number_in(count), name.substr(last)};
  if (part.number > part.count || part.count == 0) return std::nullopt;
  part.digits = number.front() == '0' || count.front() == '0' ? static_cast<uint8_t>(count.size()) : 1;
  return part;
}

std::string part_name(const PartName& name) {
  return text_of("{}{}{}{}{}", name.stem, digits_of(name.number, name.digits), kOf, digits_of(name.count, name.digits),
                 name.extension);
}

}  // namespace wasmquant
