// How many steps patterns take, counted by the compiler: every basic block of the patterns of src/config/match and of what
// they call counts one (-fsanitize-coverage=trace-pc, GCC). No clock: the same count on every machine.
// Input on stdin: pattern, tab, piece, tab, end; names are the piece 64, 128 and 256 times and then the end.
// Output: steps for the three, one line for each pattern.
#include <cinttypes>
#include <cstdio>
#include <string>

#include "config/match/name_match.h"

static uint64_t steps = 0;
extern "C" void __sanitizer_cov_trace_pc() { ++steps; }

int main() {
  char line[65536];
  while (std::fgets(line, sizeof line, stdin) != nullptr) {
    std::string text(line);
    if (text.ends_with('\n')) text.pop_back();
    const size_t first = text.find('\t'), second = text.find('\t', first + 1);
    if (second == std::string::npos) return 2;
    const wasmquant::NamePattern pattern(std::string_view(text).substr(0, first));
    for (const int times : {64, 128, 256}) {
      std::string name;
      for (int i = 0; i < times; ++i) name += text.substr(first + 1, second - first - 1);
      name += text.substr(second + 1);
      steps = 0;
      pattern.matches(name);
      std::printf("%" PRIu64 "%c", steps, times == 256 ? '\n' : ' ');
    }
  }
  return 0;
}
