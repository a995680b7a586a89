#include "config/match/regex_program.h"

namespace wasmquant {

bool RegexProgram::repeat(int32_t begin, int least, int most, int32_t limit) {
  const int32_t length = size() - begin;
  List<RegexStep> block(steps.begin() + begin, steps.end());
  steps.resize(static_cast<size_t>(begin));
  const int copies = most < 0 ? least + 1 : most;
  if (static_cast<int64_t>(begin) + int64_t{copies} * (length + 2) > limit) return false;
  for (int i = 0; i < copies; ++i) {
    const bool loop = most < 0 && i == least;
    if (i >= least) steps.push_back({RegexOp::split, 1, length + (loop ? 2 : 1)});
    steps.append(block.begin(), block.end());
    if (loop) steps.push_back({RegexOp::jump, -(length + 1)});
  }
  return true;
}

bool RegexProgram::number_lookaheads() {
  for (int32_t i = 0; i < size(); ++i) {
    RegexStep& step = steps[static_cast<size_t>(i)];
    if (step.op != RegexOp::look && step.op != RegexOp::look_not) continue;
    step.second = static_cast<int32_t>(looks.size());
    looks.push_back(static_cast<uint32_t>(i));
  }
  return looks.size() <= 32;
}

}  // namespace wasmquant
