// Interleaved timings. Every candidate runs once per round, round after round, so that a slow spell of a shared machine
// hits all of them alike and ratios stay true.
#pragma once
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <vector>

namespace wasmquant::bench {

enum class Statistic { median, fastest };

/// Seconds of each candidate over `rounds` rounds. Unmeasured rounds come first, for at least `warm_up_seconds`: a
/// WebAssembly engine swaps in its optimised code only after a while.
inline std::vector<double> interleaved_seconds(const std::vector<std::function<void()>>& candidates, size_t rounds,
                                               Statistic statistic, double warm_up_seconds = 0.3) {
  using Clock = std::chrono::steady_clock;
  const auto seconds_since = [](Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
  };
  const Clock::time_point start = Clock::now();
  do {
    for (const auto& candidate : candidates) candidate();
  } while (seconds_since(start) < warm_up_seconds);

  std::vector<std::vector<double>> samples(candidates.size());
  for (size_t round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < candidates.size(); ++i) {
      const Clock::time_point begin = Clock::now();
      candidates[i]();
      samples[i].push_back(seconds_since(begin));
    }
  }
  std::vector<double> seconds;
  for (std::vector<double>& sorted : samples) {
    std::sort(sorted.begin(), sorted.end());
    seconds.push_back(sorted[statistic == Statistic::fastest ? 0 : sorted.size() / 2]);
  }
  return seconds;
}

}  // namespace wasmquant::bench
