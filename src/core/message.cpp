// Placeholders are replaced in one pass; numbers are written the same way on every platform.
#include "core/message.h"

#include <cmath>

#include "core/json.h"

namespace wasmquant {
namespace message {
namespace {

std::string_view text_at(const void* value, Kind kind) {
  switch (kind) {
    case Kind::literal:
      return static_cast<const char*>(value);
    case Kind::pointer:
      return *static_cast<const char* const*>(value);
    case Kind::string:
      return *static_cast<const std::string*>(value);
    default:
      return *static_cast<const std::string_view*>(value);
  }
}

void append_value(std::string& out, const void* value, Kind kind) {
  if (kind <= Kind::view) {
    out += text_at(value, kind);
    return;
  }
  switch (kind) {
    case Kind::u32:
      return append_number(out, uint64_t{*static_cast<const uint32_t*>(value)});
    case Kind::i32:
      return append_number(out, int64_t{*static_cast<const int32_t*>(value)});
    case Kind::i64:
      return append_number(out, *static_cast<const int64_t*>(value));
    case Kind::f32:
      return append_number(out, *static_cast<const float*>(value));
    default:
      return append_number(out, *static_cast<const uint64_t*>(value));
  }
}

}  // namespace

std::string write(const char* pattern, Values values) {
  std::string out;
  for (const char* c = pattern; *c != '\0'; ++c) {
    if (c[0] == '{' && c[1] == 'q' && c[2] == '}') {
      out += quoted(text_at(*values.at++, *values.kinds++));
      c += 2;
    } else if (c[0] == '{' && c[1] == '}') {
      append_value(out, *values.at++, *values.kinds++);
      ++c;
    } else {
      out += *c;
    }
  }
  return out;
}

Error write_error(ErrorCode code, const char* pattern, Values values) {
  return {code, text_at(*values.at, *values.kinds), write(pattern, {values.at + 1, values.kinds + 1})};
}

}  // namespace message

void append_number(std::string& out, uint64_t number) {
  char digits[20];
  size_t begin = sizeof(digits);
  do {
    digits[--begin] = static_cast<char>('0' + number % 10);
    number /= 10;
  } while (number != 0);
  out.append(digits + begin, sizeof(digits) - begin);
}

void append_number(std::string& out, int64_t number) {
  if (number < 0) out += '-';
  append_number(out, number < 0 ? ~static_cast<uint64_t>(number) + 1 : static_cast<uint64_t>(number));
}

void append_number(std::string& out, float number) {
  if (std::isnan(number)) {
    out += "NaN";
    return;
  }
  if (std::signbit(number)) out += '-';
  double rest = std::fabs(static_cast<double>(number));
  if (std::isinf(rest)) {
    out += "Infinity";
    return;
  }
  constexpr int kDigits = 6, kMostZeros = 5;  // of 100000, and of 0.00001 before its first digit
  if (rest == 0) {
    out += '0';
    return;
  }
  int exponent = 0;  // rest * 10^exponent is the number; rest in [10^5, 10^6)
  for (; rest >= 1e6; ++exponent) rest /= 10;
  for (; rest < 1e5; --exponent) rest *= 10;
  auto digits = static_cast<uint64_t>(rest + 0.5);
  for (; digits % 10 == 0; ++exponent) digits /= 10;
  std::string text;
  append_number(text, digits);
  const int magnitude = static_cast<int>(text.size()) + exponent;  // digits before the point
  if (magnitude > kDigits + kMostZeros || magnitude < 1 - kMostZeros) {
    if (text.size() > 1) text.insert(1, ".");
    out += text_of("{}e{}", text, magnitude - 1);
  } else if (magnitude <= 0) {
    out += "0." + std::string(static_cast<size_t>(-magnitude), '0') + text;
  } else if (exponent >= 0) {
    out += text + std::string(static_cast<size_t>(exponent), '0');
  } else {
    text.insert(static_cast<size_t>(magnitude), ".");
    out += text;
  }
}

std::string quoted(std::string_view text) {
  constexpr size_t kShown = 80;
  std::string out;
  json::append_quoted(out, text.size() <= kShown ? std::string(text) : text_of("{}...", text.substr(0, kShown)));
  return out;
}

}  // namespace wasmquant
