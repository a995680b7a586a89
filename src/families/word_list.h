// Words of a table's row, separated by single spaces.
#pragma once
#include <string_view>

namespace wasmquant::families {

/// Removes and returns the first word. "" when nothing is left.
inline std::string_view next_word(std::string_view& words) noexcept {
  const size_t space = words.find(' ');
  const std::string_view word = words.substr(0, space);
  words = space == std::string_view::npos ? std::string_view() : words.substr(space + 1);
  return word;
}

/// Whether `test(word)` is true of any of `words`.
template <class Test>
bool any_word(std::string_view words, const Test& test) {
  while (!words.empty())
    if (test(next_word(words))) return true;
  return false;
}

/// Whether `text` is one of `words`; "" never is.
inline bool is_word(std::string_view words, std::string_view text) noexcept {
  return !text.empty() && any_word(words, [&](std::string_view word) { return word == text; });
}

}  // namespace wasmquant::families
