// Patterns are parsed into literals and sets once; a name is matched without backtracking into earlier stars.
#include "config/match/name_match.h"

#include "core/list.h"

namespace wasmquant {
namespace {

// The code point at `i`, which moves past it. A byte that begins no well-formed sequence maps above the range of code
// points, so that any bytes can be matched.
uint32_t next_code_point(std::string_view text, size_t& i) noexcept {
  const auto byte = [&](size_t k) { return static_cast<uint8_t>(text[k]); };
  const uint8_t lead = byte(i);
  const size_t length = lead < 0x80 ? 1 : lead >= 0xF0 && lead < 0xF8 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC0 ? 2 : 0;
  if (length == 1) return byte(i++);
  if (length == 0 || lead >= 0xF8 || text.size() - i < length) return 0x110000u + byte(i++);
  uint32_t code_point = lead & (0x7Fu >> length);
  for (size_t k = 1; k < length; ++k) {
    if ((byte(i + k) & 0xC0) != 0x80) return 0x110000u + byte(i++);
    code_point = code_point << 6 | (byte(i + k) & 0x3Fu);
  }
  i += length;
  return code_point;
}

}  // namespace

NamePattern::NamePattern(std::string_view pattern) {
  if (is_regex(pattern)) {
    regex_ = Regex(pattern.substr(3));
    is_regex_ = true;
    return;
  }
  List<uint32_t> text;
  text.reserve(pattern.size());
  for (size_t i = 0; i < pattern.size();) text.push_back(next_code_point(pattern, i));
  // An opening bracket begins a set only if a `]` follows; looked up once, so that "[[[[..." stays linear.
  size_t last_close = 0;
  for (size_t i = 0; i < text.size(); ++i)
    if (text[i] == ']') last_close = i;

  for (size_t i = 0; i < text.size();) {
    const uint32_t c = text[i];
    if (c == '*') {
      if (tokens_.empty() || tokens_.back().kind != Kind::any_run) tokens_.push_back({Kind::any_run, 0, 0});
      ++i;
    } else if (c == '?') {
      tokens_.push_back({Kind::any_one, 0, 0});
      ++i;
    } else if (const size_t after = c == '[' && last_close > i ? parse_set(text, i) : 0; after != 0) {
      i = after;
    } else {
      tokens_.push_back({Kind::literal, c, 0});
      ++i;
    }
  }
  find_literals();
}

// Adds the set whose `[` is at `open`; returns the index after its `]`, or 0 if it is not closed. As in Python, a
// leading `]` (after `!`) is a member, `-` is literal at either end, and a backward range is empty.
size_t NamePattern::parse_set(const List<uint32_t>& text, size_t open) {
  size_t begin = open + 1;
  const bool negated = begin < text.size() && text[begin] == '!';
  if (negated) ++begin;
  size_t close = begin < text.size() && text[begin] == ']' ? begin + 1 : begin;
  while (close < text.size() && text[close] != ']') ++close;
  if (close >= text.size()) return 0;

  const auto first = static_cast<uint32_t>(ranges_.size());
  for (size_t i = begin; i < close;) {
    if (i + 2 < close && text[i + 1] == '-') {
      if (text[i] <= text[i + 2]) ranges_.emplace_back(text[i], text[i + 2]);
      i += 3;
    } else {
      ranges_.emplace_back(text[i], text[i]);
      ++i;
    }
  }
  tokens_.push_back({negated ? Kind::not_set : Kind::set, first, static_cast<uint32_t>(ranges_.size()) - first});
  return close + 1;
}

bool NamePattern::accepts(const Token& token, uint32_t code_point) const noexcept {
  if (token.kind == Kind::literal) return token.value == code_point;
  if (token.kind == Kind::any_one) return true;
  bool inside = false;
  for (uint32_t k = 0; k < token.count && !inside; ++k) {
    const auto& [low, high] = ranges_[token.value + k];
    inside = low <= code_point && code_point <= high;
  }
  return inside == (token.kind == Kind::set);
}

void NamePattern::find_literals() {
  const auto is_ascii = [](const Token& token) { return token.kind == Kind::literal && token.value < 0x80; };
  for (size_t i = 0; i < tokens_.size();) {
    std::string run;
    const size_t begin = i;
    for (; i < tokens_.size() && is_ascii(tokens_[i]); ++i) run += static_cast<char>(tokens_[i].value);
    if (begin == 0) head_ = run;
    if (i == tokens_.size()) tail_ = run;
    if (run.size() > longest_.size()) longest_ = std::move(run);
    if (i == begin) ++i;
  }
}

bool NamePattern::matches(std::string_view name) const {
  if (is_regex_) return regex_.matches(name);
  if (!name.starts_with(head_) || !name.ends_with(tail_) || name.find(longest_) == std::string_view::npos) return false;
  constexpr size_t kNone = SIZE_MAX;
  size_t token = 0, at = 0;
  size_t run = kNone, run_end = 0;  // the last `*` met and the end of what it covers so far
  while (at < name.size()) {
    if (token < tokens_.size() && tokens_[token].kind == Kind::any_run) {
      run = token++;
      run_end = at;
      continue;
    }
    size_t after = at;
    if (token < tokens_.size() && accepts(tokens_[token], next_code_point(name, after))) {
      ++token;
      at = after;
    } else if (run != kNone) {
      next_code_point(name, run_end);
      token = run + 1;
      at = run_end;
    } else {
      return false;
    }
  }
  while (token < tokens_.size() && tokens_[token].kind == Kind::any_run) ++token;
  return token == tokens_.size();
}

bool is_glob(std::string_view text) noexcept {
  return is_regex(text) || text.find_first_of("*?[") != std::string_view::npos;
}

}  // namespace wasmquant
