// Expressions become steps, without recursion deeper than their groups.
#include "config/match/pattern_cursor.h"

namespace wasmquant {
namespace {

// Appends steps as it parses.
class RegexParser {
 public:
  RegexParser(std::string_view text, RegexProgram& out) : in_(text), out_(out) {}

  /// What is wrong with the pattern; null if nothing is.
  const char* parse() {
    alternatives(0);
    if (in_.problem() == nullptr && in_.more()) in_.fail("a ) closes nothing");
    out_.steps.push_back({RegexOp::accept});
    if (!out_.number_lookaheads()) in_.fail("it has more than 32 lookaheads");
    return in_.problem();
  }

 private:
  static constexpr int32_t kMaxSteps = 4000;
  static constexpr int kMaxDepth = 40;

  void alternatives(int depth) {
    if (depth > kMaxDepth) return in_.fail("groups are nested too deeply");
    List<int32_t> jumps;
    for (;;) {
      const auto branch = static_cast<size_t>(out_.size());
      out_.steps.push_back({RegexOp::jump, 1});  // a split, when another alternative follows
      while (in_.more() && in_.peek() != '|' && in_.peek() != ')') repeated(depth);
      if (!in_.take('|')) break;
      if (out_.size() >= kMaxSteps) return in_.fail("the pattern is too large");
      jumps.push_back(out_.size());
      out_.steps.push_back({RegexOp::jump});
      out_.steps[branch] = {RegexOp::split, 1, out_.size() - static_cast<int32_t>(branch)};
    }
    for (const int32_t jump : jumps) out_.steps[static_cast<size_t>(jump)].first = out_.size() - jump;
  }

  void repeated(int depth) {
    const int32_t begin = out_.size();
    atom(depth);
    while (in_.more()) {
      int least = 0, most = -1;
      if (in_.take('?')) {
        most = 1;
      } else if (in_.take('+')) {
        least = 1;
      } else if (!in_.take('*') && !in_.take_counts(least, most)) {
        return;
      }
      in_.take('?');  // a lazy repetition matches the same names
      if (!out_.repeat(begin, least, most, kMaxSteps)) return in_.fail("the pattern is too large");
    }
  }

  // After a parenthesis: (...), (?:...), (?P<name>...), (?=...), (?!...), (?i), (?i:...).
  void group(int depth) {
    const bool folds = folds_case_;
    if (in_.take('?') && !in_.take(':')) {
      if (in_.take('=')) return lookahead(RegexOp::look, depth);
      if (in_.take('!')) return lookahead(RegexOp::look_not, depth);
      if (in_.take('P')) {
        if (!in_.take('<')) return in_.fail("the only form of (?P...) that is understood is (?P<name>...)");
        while (in_.more() && in_.peek() != '>') in_.next();
        in_.take('>');
      } else if (in_.take('i')) {
        folds_case_ = true;
        if (in_.take(')')) return;  // to the end of the group around it
        if (!in_.take(':')) return in_.fail("the only flag that is understood is (?i)");
      } else {
        return in_.fail("of (?...), only (?:...), (?=...), (?!...), (?P<name>...) and (?i) are understood");
      }
    }
    alternatives(depth + 1);
    if (!in_.take(')')) in_.fail("a ( is not closed");
    folds_case_ = folds;
  }

  void lookahead(RegexOp op, int depth) {
    const auto begin = static_cast<size_t>(out_.size());
    const bool folds = folds_case_;
    out_.steps.push_back({op});
    alternatives(depth + 1);
    if (!in_.take(')')) in_.fail("a ( is not closed");
    folds_case_ = folds;
    out_.steps.push_back({RegexOp::accept});
    out_.steps[begin].first = out_.size() - static_cast<int32_t>(begin);
  }

  void atom(int depth) {
    if (out_.size() >= kMaxSteps) return in_.fail("the pattern is too large");
    const char c = in_.next();
    ByteSet set;
    bool is_negated = false;
    switch (c) {
      case '(':
        return group(depth);
      case '*':
      case '+':
      case '?':
        return in_.fail("there is nothing before a repetition");
      case '^':
        out_.steps.push_back({RegexOp::begin});
        return;
      case '$':
        out_.steps.push_back({RegexOp::end});
        return;
      case '.':
        set.add('\n');
        set.invert();
        break;
      case '[':
        is_negated = in_.take_bracket(set);
        break;
      case '\\':
        if (in_.more() && (in_.peek() == 'A' || in_.peek() == 'Z')) {
          out_.steps.push_back({in_.next() == 'A' ? RegexOp::begin : RegexOp::end});
          return;
        }
        in_.take_escape(set);
        break;
      default:
        set.add(static_cast<uint8_t>(c));
    }
    if (folds_case_) set.fold_case();
    if (is_negated) set.invert();
    out_.steps.push_back({RegexOp::byte, static_cast<int32_t>(out_.sets.size())});
    out_.sets.push_back(set);
  }

  PatternCursor in_;
  RegexProgram& out_;
  bool folds_case_ = false;
};

}  // namespace

const char* parse_regex(std::string_view pattern, RegexProgram& out) { return RegexParser(pattern, out).parse(); }

}  // namespace wasmquant
