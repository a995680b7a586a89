// Regular expressions over layer names, as compressed-tensors and GPTQ configs write them (`re:.*\.(q|k|v)_proj`).
// Python's re.match: from the start of the name, not necessarily to its end. Literals, `.`, sets, \d \w \s and their
// opposites, groups, `|`, `*` `+` `?` `{m,n}`, `^` `$`, lookaheads (?=...) (?!...), and (?i) for both cases. Others
// (backreferences, lookbehind, \b) are rejected, so that matching takes at most O(pattern · name) steps: all
// alternatives are followed at once (Thompson, "Regular Expression Search Algorithm", 1968), and where lookaheads hold
// is found before, in one pass from the end of the name. Bytes, not code points.
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

  enum class Op : uint8_t { byte, split, jump, begin, end, look, look_not, accept };
  /// byte: one of set `first` · split: to +first or +second · jump: to +first · look, look_not: to +first if what
  /// follows matches, or does not match, the steps in between, which end in an accept of their own; the index of its
  /// bit is `second`
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

  static constexpr int32_t kMaxLooks = 32;

  /// For each position of the name, 0 to its length, a bit for each lookahead that holds there.
  List<uint32_t> find_looks(std::string_view name) const;
  /// Steps from which `accept` of the lookahead at `look` is reached at `position`, in `now`; those at the position
  /// after it are in `next`. `held`: bits of the lookaheads inside it.
  void step_back(size_t look, std::string_view name, size_t position, uint32_t held, const List<uint8_t>& next,
                 List<uint8_t>& now) const;

  List<Step> steps_;
  List<ByteSet> sets_;
  List<uint32_t> looks_;  // steps that are lookaheads, in their order
};

}  // namespace wasmquant
