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

#include "config/match/regex_program.h"

namespace wasmquant {

/// A compiled regular expression.
class Regex {
 public:
  Regex() noexcept = default;
  /// `problem`, if given, gets a sentence if the pattern is not supported; such a pattern matches nothing.
  explicit Regex(std::string_view pattern, std::string* problem = nullptr);

  bool matches(std::string_view name) const;

 private:
  /// For each position of the name, 0 to its length, a bit for each lookahead that holds there.
  List<uint32_t> find_looks(std::string_view name) const;
  /// Steps from which `accept` of the lookahead at `look` is reached at `position`, in `now`; those at the position
  /// after it are in `next`. `held`: bits of the lookaheads inside it.
  void step_back(size_t look, std::string_view name, size_t position, uint32_t held, const List<uint8_t>& next,
                 List<uint8_t>& now) const;

  RegexProgram program_;
};

}  // namespace wasmquant
