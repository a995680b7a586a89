// Globs and regular expressions over names: pattern, NUL, name. Globs against a plain table of which beginnings of the
// pattern match which beginnings of the name; regular expressions against what has to hold for any of them.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "config/match/name_match.h"
#include "require.h"

namespace {

using wasmquant::NamePattern;
using wasmquant::Regex;

/// fnmatch for ASCII, by dynamic programming. Where a set ends is looked for anew at each `[`, as Python does.
bool glob_matches(std::string_view pattern, std::string_view name) {
  std::vector<bool> reached(name.size() + 1), next(name.size() + 1);
  reached[0] = true;
  for (size_t i = 0; i < pattern.size();) {
    const char c = pattern[i];
    std::fill(next.begin(), next.end(), false);
    size_t close = std::string_view::npos;
    if (c == '[') {
      close = i + 1;
      if (close < pattern.size() && pattern[close] == '!') ++close;
      if (close < pattern.size() && pattern[close] == ']') ++close;
      close = pattern.find(']', close);
    }
    if (c == '*') {
      bool any = false;
      for (size_t k = 0; k <= name.size(); ++k) next[k] = any = any || reached[k];
      ++i;
    } else if (close != std::string_view::npos) {
      std::string_view set = pattern.substr(i + 1, close - i - 1);
      const bool negated = set.starts_with('!');
      if (negated) set.remove_prefix(1);
      for (size_t k = 0; k < name.size(); ++k) {
        bool inside = false;
        for (size_t s = 0; s < set.size();) {
          const bool is_range = s + 2 < set.size() && set[s + 1] == '-';
          inside |= is_range ? set[s] <= name[k] && name[k] <= set[s + 2] : set[s] == name[k];
          s += is_range ? 3 : 1;
        }
        next[k + 1] = reached[k] && inside != negated;
      }
      i = close + 1;
    } else {
      for (size_t k = 0; k < name.size(); ++k) next[k + 1] = reached[k] && (c == '?' || name[k] == c);
      ++i;
    }
    reached.swap(next);
  }
  return reached[name.size()];
}

bool is_ascii(std::string_view text) {
  for (const char c : text)
    if (c < 0) return false;
  return true;
}

void check_regex(const std::string& pattern, const std::string& name) {
  std::string problem;
  const Regex regex(pattern, &problem);
  const bool found = regex.matches(name);
  require(problem.empty() || !found);
  if (!problem.empty()) return;
  const auto same = [&](const std::string& other, bool expected) {
    std::string trouble;
    const bool answer = Regex(other, &trouble).matches(name);
    require(!trouble.empty() || answer == expected);  // the longer pattern may be too large
  };
  same("(?:" + pattern + ")", found);
  same("^(?:" + pattern + ")", found);
  same("(?:" + pattern + ")|(?:" + pattern + ")", found);
  same("(?:" + pattern + ")?", true);
  same("(?:" + pattern + "){0}", true);
  same("(?:" + pattern + "){1}", found);
  if (pattern.find_first_of("$Z") == std::string::npos && found) require(regex.matches(name + "\n.tail"));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const size_t end = text.find('\0');
  const std::string pattern(text.substr(0, end));
  const std::string name(end == text.npos ? "" : text.substr(end + 1));
  if (pattern.size() > 2000 || name.size() > 2000) return 0;
  check_regex(pattern, name);
  const bool found = NamePattern(pattern).matches(name);
  if (wasmquant::is_regex(pattern))
    require(found == Regex(std::string_view(pattern).substr(3)).matches(name));
  else if (is_ascii(pattern) && is_ascii(name))
    require(found == glob_matches(pattern, name));
  if (!wasmquant::is_glob(pattern)) require(found == (pattern == name));
  return 0;
}
