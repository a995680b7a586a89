// Messages with placeholders: one call each, where concatenations would be several in hundreds of places.
//   return error_at(ErrorCode::file_invalid, name, "found {} items; the limit is {}", count, limit);
// {} is text, a whole number, or a float with six significant digits; {q} is text in quotes, shortened if very long.
// Other braces are text.
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include "core/error.h"

namespace wasmquant {

/// Letters of ASCII; bytes of other scripts stay as they are.
constexpr char lower(char c) noexcept { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

/// Whether two words differ at most in upper and lower case.
constexpr bool is_same_word(std::string_view a, std::string_view b) noexcept {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) { return lower(x) == lower(y); });
}

namespace message {

/// Type of a placeholder's value, so that one function writes all messages.
enum class Kind : char { literal, pointer, string, view, u32, i32, u64, i64, f32 };

template <class T>
constexpr Kind kind_of() {
  if constexpr (std::is_array_v<T>) return Kind::literal;
  if constexpr (std::is_same_v<T, const char*>) return Kind::pointer;
  if constexpr (std::is_same_v<T, std::string>) return Kind::string;
  if constexpr (std::is_same_v<T, std::string_view>) return Kind::view;
  if constexpr (std::is_same_v<T, float>) return Kind::f32;
  if constexpr (std::is_integral_v<T>) {
    if (sizeof(T) == 8) return std::is_signed_v<T> ? Kind::i64 : Kind::u64;
    if (sizeof(T) == 4) return std::is_signed_v<T> ? Kind::i32 : Kind::u32;
  }
}

/// The values of one message's placeholders: their addresses and kinds.
struct Values {
  const void* const* at;
  const Kind* kinds;
};
template <Kind... kinds>
inline constexpr Kind kKinds[] = {kinds..., Kind::literal};

std::string write(const char* pattern, Values values);
/// The first value is the error's `where`.
Error write_error(ErrorCode code, const char* pattern, Values values);

}  // namespace message

/// The pattern with its placeholders replaced, in order.
template <class... T>
std::string text_of(const char* pattern, const T&... values) {
  const void* const at[] = {&values..., nullptr};
  return message::write(pattern, {at, message::kKinds<message::kind_of<T>()...>});
}

/// An Error whose message is the pattern with its placeholders replaced. `where`: text or a number.
template <class Where, class... T>
Error error_at(ErrorCode code, const Where& where, const char* pattern, const T&... values) {
  const void* const at[] = {&where, &values...};
  return message::write_error(code, pattern,
                              {at, message::kKinds<message::kind_of<Where>(), message::kind_of<T>()...>});
}

void append_number(std::string& out, uint64_t number);
void append_number(std::string& out, int64_t number);
/// Six significant digits, for messages: 65504, -0.125, 1.5e30, NaN, -Infinity. The same on every platform.
void append_number(std::string& out, float number);

/// `text` in double quotes, shortened when very long.
std::string quoted(std::string_view text);

}  // namespace wasmquant
