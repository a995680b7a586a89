// Glob patterns over layer names, with the rules of Python's fnmatch.fnmatchcase (Quark's pattern language):
// `*` any run of characters including dots; `?` one character; `[seq]` and `[!seq]` one character in or not in a set
// with ranges; everything else is literal and case-sensitive; the whole name must match. A `[` without `]` is literal.
// A pattern that begins with `re:` is a regular expression instead (config/match/regex.h).
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "config/match/regex.h"
#include "core/list.h"

namespace wasmquant {

/// Whether the text is a regular expression: it begins with `re:` (compressed-tensors' spelling).
inline bool is_regex(std::string_view text) noexcept { return text.starts_with("re:"); }

/// A compiled pattern. Matching takes at most O(pattern · name) steps: only the last `*` is ever retried.
class NamePattern {
 public:
  explicit NamePattern(std::string_view pattern);

  bool matches(std::string_view name) const;

 private:
  enum class Kind : uint8_t { literal, any_one, any_run, set, not_set };
  struct Token {
    Kind kind;
    uint32_t value;  // literal: the code point; sets: index of the first range
    uint32_t count;  // sets: number of ranges
  };

  size_t parse_set(const List<uint32_t>& text, size_t open);
  void find_ends();
  bool accepts(const Token& token, uint32_t code_point) const noexcept;

  Regex regex_;
  bool is_regex_ = false;
  List<Token> tokens_;
  List<std::pair<uint32_t, uint32_t>> ranges_;  // inclusive
  std::string head_, tail_;                     // ASCII with which every match begins and ends: most names fail here
};

/// Whether the text is more than a plain name: a glob or a regular expression.
bool is_glob(std::string_view text) noexcept;

}  // namespace wasmquant
