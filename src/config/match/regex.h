// Regular expressions over layer names, as compressed-tensors and GPTQ configs write them (`re:.*\.(q|k|v)_proj`).
// Python's re.match: from the start of the name, not necessarily to its end. Literals, `.`, sets, \d \w \s and their
// opposites, groups, `|`, `*` `+` `?` `{m,n}`, `^` `$`. Backreferences and lookaround ((?=, (?!, \b) are rejected, so
// that matching takes at most O(pattern · name) steps: all alternatives are followed at once (Thompson, "Regular
// Expression Search Algorithm", 1968). Bytes, not code points.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "core/list.h"

namespace wasmquant {

/// A compiled regular expression.
class Regex {
 public:
  Regex() noexcept = default;
  /// `problem`, if given, gets a sentence if the pattern is not supported; such a pattern matches nothing.
  explicit Regex(std::string_view pattern, std::string* problem = nullptr);

  bool matches(std::string_view name) const;

 private:
  friend class RegexParser;

  enum class Op : uint8_t { byte, split, jump, begin, end, accept };
  /// byte: one of set `first` · split: to +first or +second · jump: to +first
  struct Step {
    Op op;
    int32_t first = 0, second = 0;
  };
  struct ByteSet {
    uint32_t words[8] = {};
    void add(uint8_t byte) noexcept { words[byte >> 5] |= 1u << (byte & 31); }
    bool has(uint8_t byte) const noexcept { return words[byte >> 5] >> (byte & 31) & 1; }
    void invert() noexcept {
      for (uint32_t& word : words) word = ~word;
    }
  };

  List<Step> steps_;
  List<ByteSet> sets_;
};

}  // namespace wasmquant
