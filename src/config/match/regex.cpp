// A name is matched by following all steps at once, in bounded time.
#include "config/match/regex.h"

#include <algorithm>

namespace wasmquant {

Regex::Regex(std::string_view pattern, std::string* problem) {
  const char* found = parse_regex(pattern, program_);
  if (found == nullptr) return;
  program_.steps.clear();
  if (problem != nullptr) *problem = found;
}

// Every loop that a lookahead has inside another takes one more pass over its steps, so a position takes at most
// O(pattern · depth) of them.
void Regex::step_back(size_t look, std::string_view name, size_t position, uint32_t held, const List<uint8_t>& next,
                      List<uint8_t>& now) const {
  const size_t end = look + static_cast<size_t>(program_.steps[look].first);
  const auto reaches = [&](size_t at) -> bool {
    const RegexStep& step = program_.steps[at];
    const auto to = [&](int32_t by) { return now[at + static_cast<size_t>(int64_t{by})] != 0; };
    switch (step.op) {
      case RegexOp::accept:
        return true;
      case RegexOp::byte:
        return position < name.size() && next[at + 1] != 0 &&
               program_.sets[static_cast<size_t>(step.first)].has(static_cast<uint8_t>(name[position]));
      case RegexOp::split:
        return to(step.first) || to(step.second);
      case RegexOp::jump:
        return to(step.first);
      case RegexOp::begin:
        return position == 0 && to(1);
      case RegexOp::end:
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
  List<uint32_t> table(program_.looks.empty() ? 0 : name.size() + 1);
  if (table.empty()) return table;
  List<uint8_t> now(program_.steps.size()), next(program_.steps.size());
  for (size_t position = table.size(); position-- > 0; now.swap(next)) {
    for (size_t k = program_.looks.size(); k-- > 0;) {  // inner ones come after those around them
      const size_t look = program_.looks[k];
      step_back(look, name, position, table[position], next, now);
      if ((now[look + 1] != 0) == (program_.steps[look].op == RegexOp::look)) table[position] |= 1u << k;
    }
  }
  return table;
}

bool Regex::matches(std::string_view name) const {
  if (program_.steps.empty()) return false;
  const List<uint32_t> looks = find_looks(name);
  List<uint32_t> now, next, stack;
  List<uint32_t> seen(program_.steps.size());  // position + 1 at which a step was entered last
  // Enters a step and all that follow without a byte; true when one of them accepts.
  const auto enter = [&](uint32_t start, size_t position) {
    stack.push_back(start);
    while (!stack.empty()) {
      const uint32_t at = stack.back();
      stack.pop_back();
      if (seen[at] == position + 1) continue;
      seen[at] = static_cast<uint32_t>(position + 1);
      const RegexStep& step = program_.steps[at];
      if (step.op == RegexOp::accept) return true;
      if (step.op == RegexOp::byte) next.push_back(at);
      const auto follow = [&](int32_t by) { stack.push_back(at + static_cast<uint32_t>(by)); };
      if (step.op == RegexOp::split) follow(step.second);
      if (step.op == RegexOp::split || step.op == RegexOp::jump) follow(step.first);
      if ((step.op == RegexOp::look || step.op == RegexOp::look_not) && (looks[position] >> step.second & 1) != 0)
        follow(step.first);
      if ((step.op == RegexOp::begin && position == 0) || (step.op == RegexOp::end && position == name.size()))
        follow(1);
    }
    return false;
  };
  if (enter(0, 0)) return true;
  for (size_t position = 0; position < name.size() && !next.empty(); ++position) {
    now.swap(next);
    next.clear();
    for (const uint32_t at : now)
      if (program_.sets[static_cast<size_t>(program_.steps[at].first)].has(static_cast<uint8_t>(name[position])) &&
          enter(at + 1, position + 1))
        return true;
  }
  return false;
}

}  // namespace wasmquant
