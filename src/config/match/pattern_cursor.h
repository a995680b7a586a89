// A position in the text of a regular expression, and the parts of it that are not steps.
#pragma once
#include <cstddef>
#include <string_view>

#include "config/match/regex_program.h"

namespace wasmquant {

class PatternCursor {
 public:
  explicit PatternCursor(std::string_view text) noexcept : text_(text) {}

  /// Keeps the first problem, and goes to the end.
  void fail(const char* problem) noexcept {
    if (problem_ == nullptr) problem_ = problem;
    at_ = text_.size();
  }
  /// Null: none so far.
  const char* problem() const noexcept { return problem_; }

  bool more() const noexcept { return at_ < text_.size(); }
  char peek() const noexcept { return text_[at_]; }
  char next() noexcept { return text_[at_++]; }
  bool take(char c) noexcept {
    if (!more() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  /// {m}, {m,}, {,n} or {m,n}; anything else in braces is literal. `most` is -1 without a limit.
  bool take_counts(int& least, int& most);
  /// After a backslash. The byte it stands for, or -1 for a class; adds it to `set`.
  int take_escape(ByteSet& set);
  /// After a [. Whether the set begins with ^, which the caller applies after folding cases.
  bool take_bracket(ByteSet& set);

 private:
  std::string_view text_;
  size_t at_ = 0;
  const char* problem_ = nullptr;
};

}  // namespace wasmquant
