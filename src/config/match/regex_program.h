// Steps of a compiled regular expression. Jumps are relative, so a finished block can be moved and repeated.
#pragma once
#include <cstdint>
#include <string_view>

#include "core/list.h"

namespace wasmquant {

/// What one place of a name may be.
struct ByteSet {
  uint32_t words[8] = {};
  void add(uint8_t byte) noexcept { words[byte >> 5] |= 1u << (byte & 31); }
  void add(const ByteSet& other) noexcept {
    for (int i = 0; i < 8; ++i) words[i] |= other.words[i];
  }
  bool has(uint8_t byte) const noexcept { return words[byte >> 5] >> (byte & 31) & 1; }
  void invert() noexcept {
    for (uint32_t& word : words) word = ~word;
  }
  /// Lower and upper case of each letter.
  void fold_case() noexcept {
    for (int letter = 'a'; letter <= 'z'; ++letter) {
      const auto lower = static_cast<uint8_t>(letter), upper = static_cast<uint8_t>(letter - 32);
      if (has(lower)) add(upper);
      if (has(upper)) add(lower);
    }
  }
};

enum class RegexOp : uint8_t { byte, split, jump, begin, end, look, look_not, accept };
/// byte: one of set `first` · split: to +first or +second · jump: to +first · look, look_not: to +first if what
/// follows matches, or does not match, the steps in between, which end in an accept of their own; the index of its
/// bit is `second`
struct RegexStep {
  RegexOp op;
  int32_t first = 0, second = 0;
};

struct RegexProgram {
  List<RegexStep> steps;
  List<ByteSet> sets;
  List<uint32_t> looks;  // steps that are lookaheads, in their order

  int32_t size() const noexcept { return static_cast<int32_t>(steps.size()); }
  /// Repeats the steps from `begin` on; `most` below 0: without end. False: there would be more than `limit` steps.
  bool repeat(int32_t begin, int least, int most, int32_t limit);
  /// Numbers the lookaheads, at the end: repetitions have copied some. False: there are more than 32.
  bool number_lookaheads();
};

/// Appends the steps of a pattern. Returns what is wrong with it; null if nothing is.
const char* parse_regex(std::string_view pattern, RegexProgram& out);

}  // namespace wasmquant
