#include "config/match/pattern_cursor.h"

#include <algorithm>

namespace wasmquant {
namespace {

constexpr int kMaxRepeat = 255;

}  // namespace

bool PatternCursor::take_counts(int& least, int& most) {
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

int PatternCursor::take_escape(ByteSet& set) {
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
    set.add(members);
    return -1;
  }
  const bool plain = (c >= '0' && c <= '9') || (lower >= 'a' && lower <= 'z');
  if (plain) return fail("of escapes with letters and digits, only \\d \\w \\s \\D \\W \\S \\A \\Z are understood"), -1;
  set.add(static_cast<uint8_t>(c));
  return static_cast<uint8_t>(c);
}

bool PatternCursor::take_bracket(ByteSet& set) {
  const bool negated = take('^');
  for (bool first = true; !(more() && text_[at_] == ']' && !first); first = false) {
    if (!more()) return fail("a [ is not closed"), false;
    const char c = text_[at_++];
    int low = static_cast<uint8_t>(c);
    if (c == '\\')
      low = take_escape(set);
    else
      set.add(static_cast<uint8_t>(c));
    if (low < 0 || at_ + 1 >= text_.size() || text_[at_] != '-' || text_[at_ + 1] == ']') continue;
    ++at_;
    int high = static_cast<uint8_t>(text_[at_++]);
    if (high == '\\') high = take_escape(set);
    if (high < low) return fail("a range in [] runs backwards"), false;
    for (int byte = low; byte <= high; ++byte) set.add(static_cast<uint8_t>(byte));
  }
  take(']');
  return negated;
}

}  // namespace wasmquant
