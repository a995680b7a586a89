// Expressions become steps with relative jumps; a name is matched by following all of them at once, in bounded time.
#include "config/match/regex.h"

#include <algorithm>

namespace wasmquant {

// Appends steps as it parses. Jumps are relative, so a finished block can be moved and repeated.
class RegexParser {
 public:
  RegexParser(std::string_view text, Regex& out) : text_(text), out_(out) {}

  /// The problem with the pattern; null if there is none.
  const char* parse() {
    alternatives(0);
    if (problem_ == nullptr && at_ < text_.size()) fail("a ) closes nothing");
    out_.steps_.push_back({Regex::Op::accept});
    // Repetitions have copied lookaheads.
    for (int32_t i = 0; i < size(); ++i) {
      Step& step = out_.steps_[static_cast<size_t>(i)];
      if (step.op != Op::look && step.op != Op::look_not) continue;
      step.second = static_cast<int32_t>(out_.looks_.size());
      out_.looks_.push_back(static_cast<uint32_t>(i));
    }
    if (out_.looks_.size() > static_cast<size_t>(Regex::kMaxLooks)) fail("it has more than 32 lookaheads");
    return problem_;
  }

 private:
  using Op = Regex::Op;
  using Step = Regex::Step;
  using ByteSet = Regex::ByteSet;
  static constexpr int32_t kMaxSteps = 4000;
  static constexpr int kMaxDepth = 40, kMaxRepeat = 255;

  void fail(const char* problem) {
    if (problem_ == nullptr) problem_ = problem;
    at_ = text_.size();
  }
  bool more() const { return at_ < text_.size(); }
  bool take(char c) {
    if (!more() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  int32_t size() const { return static_cast<int32_t>(out_.steps_.size()); }

  void alternatives(int depth) {
    if (depth > kMaxDepth) return fail("groups are nested too deeply");
    List<int32_t> jumps;
    for (;;) {
      const auto branch = static_cast<size_t>(size());
      out_.steps_.push_back({Op::jump, 1});  // a split, when another alternative follows
      while (more() && text_[at_] != '|' && text_[at_] != ')') repeated(depth);
      if (!take('|')) break;
      if (size() >= kMaxSteps) return fail("the pattern is too large");
      jumps.push_back(size());
      out_.steps_.push_back({Op::jump});
      out_.steps_[branch] = {Op::split, 1, size() - static_cast<int32_t>(branch)};
    }
    for (const int32_t jump : jumps) out_.steps_[static_cast<size_t>(jump)].first = size() - jump;
  }

  void repeated(int depth) {
    const int32_t begin = size();
    atom(depth);
    while (more()) {
      int least = 0, most = -1;
      if (take('?')) {
        most = 1;
      } else if (take('+')) {
        least = 1;
      } else if (!take('*') && !counts(least, most)) {
        return;
      }
      take('?');  // a lazy repetition matches the same names
      repeat(begin, least, most);
    }
  }

  // {m}, {m,}, {,n} or {m,n}; anything else in braces is literal.
  bool counts(int& least, int& most) {
    size_t at = at_;
    if (text_[at] != '{') return false;
    const auto number = [&](int none) {
      int value = none;
      while (++at < text_.size() && text_[at] >= '0' && text_[at] <= '9')
        value = std::min((value < 0 ? 0 : value) * 10 + (text_[at] - '0'), kMaxRepeat + 1);
      return value;
    };
    least = number(-1);
    const bool comma = at < text_.size() && text_[at] == ',';
    most = comma ? number(-1) : least;
    if (at >= text_.size() || text_[at] != '}' || (least < 0 && most < 0)) return false;
    if (least < 0) least = 0;
    at_ = at + 1;
    if (least > kMaxRepeat || most > kMaxRepeat) fail("something is repeated too often");
    return true;
  }

  void repeat(int32_t begin, int least, int most) {
    const int32_t length = size() - begin;
    List<Step> block(out_.steps_.begin() + begin, out_.steps_.end());
    out_.steps_.resize(static_cast<size_t>(begin));
    const int copies = most < 0 ? least + 1 : most;
    if (static_cast<int64_t>(begin) + int64_t{copies} * (length + 2) > kMaxSteps)
      return fail("the pattern is too large");
    for (int i = 0; i < copies; ++i) {
      const bool loop = most < 0 && i == least;
      if (i >= least) out_.steps_.push_back({Op::split, 1, length + (loop ? 2 : 1)});
      out_.steps_.append(block.begin(), block.end());
      if (loop) out_.steps_.push_back({Op::jump, -(length + 1)});
    }
  }

  // After a parenthesis: (...), (?:...), (?P<name>...), (?=...), (?!...), (?i), (?i:...).
  void group(int depth) {
    const bool folds = folds_case_;
    if (take('?') && !take(':')) {
      if (take('=')) return lookahead(Op::look, depth);
      if (take('!')) return lookahead(Op::look_not, depth);
      if (take('P')) {
        if (!take('<')) return fail("the only form of (?P...) that is understood is (?P<name>...)");
        while (more() && text_[at_] != '>') ++at_;
        take('>');
      } else if (take('i')) {
        folds_case_ = true;
        if (take(')')) return;  // to the end of the group around it
        if (!take(':')) return fail("the only flag that is understood is (?i)");
      } else {
        return fail("of (?...), only (?:...), (?=...), (?!...), (?P<name>...) and (?i) are understood");
      }
    }
    alternatives(depth + 1);
    if (!take(')')) fail("a ( is not closed");
    folds_case_ = folds;
  }

  void lookahead(Op op, int depth) {
    const auto begin = static_cast<size_t>(size());
    const bool folds = folds_case_;
    out_.steps_.push_back({op});
    alternatives(depth + 1);
    if (!take(')')) fail("a ( is not closed");
    folds_case_ = folds;
    out_.steps_.push_back({Op::accept});
    out_.steps_[begin].first = size() - static_cast<int32_t>(begin);
  }

  // Lower and upper case of each letter.
  void fold(ByteSet& set) const {
    if (!folds_case_) return;
    for (int letter = 'a'; letter <= 'z'; ++letter) {
      const auto lower = static_cast<uint8_t>(letter), upper = static_cast<uint8_t>(letter - 32);
      if (set.has(lower)) set.add(upper);
      if (set.has(upper)) set.add(lower);
    }
  }

  void atom(int depth) {
    if (size() >= kMaxSteps) return fail("the pattern is too large");
    const char c = text_[at_++];
    ByteSet set;
    switch (c) {
      case '(':
        return group(depth);
      case '*':
      case '+':
      case '?':
        return fail("there is nothing before a repetition");
      case '^':
        out_.steps_.push_back({Op::begin});
        return;
      case '$':
        out_.steps_.push_back({Op::end});
        return;
      case '.':
        set.add('\n');
        set.invert();
        break;
      case '[':
        bracket(set);
        break;
      case '\\':
        if (more() && (text_[at_] == 'A' || text_[at_] == 'Z')) {
          out_.steps_.push_back({text_[at_++] == 'A' ? Op::begin : Op::end});
          return;
        }
        escape(set);
        break;
      default:
        set.add(static_cast<uint8_t>(c));
    }
    if (c != '[') fold(set);
    out_.steps_.push_back({Op::byte, static_cast<int32_t>(out_.sets_.size())});
    out_.sets_.push_back(set);
  }

  // After a backslash. The byte it stands for, or -1 for a class.
  int escape(ByteSet& set) {
    if (!more()) return fail("a \\ ends the pattern"), -1;
    const char c = text_[at_++];
    const char lower = static_cast<char>(c | 32);
    if (lower == 'd' || lower == 'w' || lower == 's') {
      ByteSet members;
      for (int byte = 0; byte < 128; ++byte) {
        const bool digit = byte >= '0' && byte <= '9';
        const bool letter = (byte | 32) >= 'a' && (byte | 32) <= 'z';
        const bool space = byte == ' ' || (byte >= 9 && byte <= 13);
        if (lower == 'd' ? digit : lower == 's' ? space : digit || letter || byte == '_')
          members.add(static_cast<uint8_t>(byte));
      }
      if (c != lower) members.invert();
      for (int i = 0; i < 8; ++i) set.words[i] |= members.words[i];
      return -1;
    }
    const bool plain = (c >= '0' && c <= '9') || (lower >= 'a' && lower <= 'z');
    if (plain)
      return fail("of escapes with letters and digits, only \\d \\w \\s \\D \\W \\S \\A \\Z are understood"), -1;
    set.add(static_cast<uint8_t>(c));
    return static_cast<uint8_t>(c);
  }

  void bracket(ByteSet& set) {
    const bool negated = take('^');
    for (bool first = true; !(more() && text_[at_] == ']' && !first); first = false) {
      if (!more()) return fail("a [ is not closed");
      const char c = text_[at_++];
      int low = static_cast<uint8_t>(c);
      if (c == '\\')
        low = escape(set);
      else
        set.add(static_cast<uint8_t>(c));
      if (low < 0 || at_ + 1 >= text_.size() || text_[at_] != '-' || text_[at_ + 1] == ']') continue;
      ++at_;
      int high = static_cast<uint8_t>(text_[at_++]);
      if (high == '\\') high = escape(set);
      if (high < low) return fail("a range in [] runs backwards");
      for (int byte = low; byte <= high; ++byte) set.add(static_cast<uint8_t>(byte));
    }
    take(']');
    fold(set);
    if (negated) set.invert();
  }

  std::string_view text_;
  Regex& out_;
  size_t at_ = 0;
  bool folds_case_ = false;
  const char* problem_ = nullptr;
};

Regex::Regex(std::string_view pattern, std::string* problem) {
  const char* found = RegexParser(pattern, *this).parse();
  if (found == nullptr) return;
  steps_.clear();
  if (problem != nullptr) *problem = found;
}

// Every loop that a lookahead has inside another takes one more pass over its steps, so a position takes at most
// O(pattern · depth) of them.
void Regex::step_back(size_t look, std::string_view name, size_t position, uint32_t held, const List<uint8_t>& next,
                      List<uint8_t>& now) const {
  const size_t end = look + static_cast<size_t>(steps_[look].first);
  const auto reaches = [&](size_t at) -> bool {
    const Step& step = steps_[at];
    const auto to = [&](int32_t by) { return now[at + static_cast<size_t>(int64_t{by})] != 0; };
    switch (step.op) {
      case Op::accept:
        return true;
      case Op::byte:
        return position < name.size() && next[at + 1] != 0 &&
               sets_[static_cast<size_t>(step.first)].has(static_cast<uint8_t>(name[position]));
      case Op::split:
        return to(step.first) || to(step.second);
      case Op::jump:
        return to(step.first);
      case Op::begin:
        return position == 0 && to(1);
      case Op::end:
        return position == name.size() && to(1);
      default:
        return (held >> step.second & 1) != 0 && to(step.first);
    }
  };
  std::fill(now.begin() + look + 1, now.begin() + end, uint8_t{0});
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t at = end; at-- > look + 1;) {
      if (now[at] != 0 || !reaches(at)) continue;
      now[at] = 1;
      changed = true;
    }
  }
}

List<uint32_t> Regex::find_looks(std::string_view name) const {
  List<uint32_t> table(looks_.empty() ? 0 : name.size() + 1);
  if (table.empty()) return table;
  List<uint8_t> now(steps_.size()), next(steps_.size());
  for (size_t position = table.size(); position-- > 0; now.swap(next)) {
    for (size_t k = looks_.size(); k-- > 0;) {  // inner ones come after those around them
      const size_t look = looks_[k];
      step_back(look, name, position, table[position], next, now);
      if ((now[look + 1] != 0) == (steps_[look].op == Op::look)) table[position] |= 1u << k;
    }
  }
  return table;
}

bool Regex::matches(std::string_view name) const {
  if (steps_.empty()) return false;
  const List<uint32_t> looks = find_looks(name);
  List<uint32_t> now, next, stack;
  List<uint32_t> seen(steps_.size());  // position + 1 at which a step was entered last
  // Enters a step and all that follow without a byte; true when one of them accepts.
  const auto enter = [&](uint32_t start, size_t position) {
    stack.push_back(start);
    while (!stack.empty()) {
      const uint32_t at = stack.back();
      stack.pop_back();
      if (seen[at] == position + 1) continue;
      seen[at] = static_cast<uint32_t>(position + 1);
      const Step& step = steps_[at];
      if (step.op == Op::accept) return true;
      if (step.op == Op::byte) next.push_back(at);
      const auto follow = [&](int32_t by) { stack.push_back(at + static_cast<uint32_t>(by)); };
      if (step.op == Op::split) follow(step.second);
      if (step.op == Op::split || step.op == Op::jump) follow(step.first);
      if ((step.op == Op::look || step.op == Op::look_not) && (looks[position] >> step.second & 1) != 0)
        follow(step.first);
      if ((step.op == Op::begin && position == 0) || (step.op == Op::end && position == name.size())) follow(1);
    }
    return false;
  };
  if (enter(0, 0)) return true;
  for (size_t position = 0; position < name.size() && !next.empty(); ++position) {
    now.swap(next);
    next.clear();
    for (const uint32_t at : now)
      if (sets_[static_cast<size_t>(steps_[at].first)].has(static_cast<uint8_t>(name[position])) &&
          enter(at + 1, position + 1))
        return true;
  }
  return false;
}

}  // namespace wasmquant
