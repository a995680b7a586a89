#include "quantize/runs.h"

namespace wasmquant {
namespace {

// Gathers consecutive rows that have the same scales.
class PerRowPatch {
 public:
  explicit PerRowPatch(RunOperation& operation) noexcept : operation_(operation) {}
  void add(size_t at, size_t length, size_t scale) noexcept {
    if (rows_ != 0 && scale_ == scale && length_ == length && at_ + rows_ * length_ == at) {
      ++rows_;
      return;
    }
    flush();
    at_ = at, rows_ = 1, length_ = length, scale_ = scale;
  }
  void flush() noexcept {
    for (size_t c = 0; rows_ != 0 && c < length_; c += kPatch)
      operation_.patch({at_ + c, rows_, length_, std::min(kPatch, length_ - c), scale_ + c});
    rows_ = 0;
  }

 private:
  RunOperation& operation_;
  size_t at_ = 0, rows_ = 0, length_ = 0, scale_ = 0;
};

// A scale for each element.
void visit_elements(uint64_t begin, size_t count, RunOperation& operation) noexcept {
  for (size_t at = 0; at < count; at += kPatch)
    operation.patch({at, 1, count, std::min(kPatch, count - at), static_cast<size_t>(begin) + at});
}

// Consecutive runs of one length, starting inside the first.
void visit_uniform_runs(uint64_t length, uint64_t begin, size_t count, RunOperation& operation) noexcept {
  size_t at = 0;
  auto scale = static_cast<size_t>(begin / length);
  if (const uint64_t into = begin % length; into != 0 && count != 0) {
    const auto rest = static_cast<size_t>(std::min<uint64_t>(length - into, count));
    operation.runs({0, rest, scale, rest});
    at = rest;
    ++scale;
  }
  while (at < count) {
    const auto run = static_cast<size_t>(std::min<uint64_t>(length, count - at));
    const size_t many = std::min(count - at, run * kRuns);
    operation.runs({at, many, scale, run});
    at += many;
    scale += kRuns;
  }
}

}  // namespace

void visit_runs(const Granularity& g, uint64_t begin, size_t count, RunOperation& operation) noexcept {
  if (const auto length = g.run_length()) {
    if (*length == 1) return visit_elements(begin, count, operation);
    return visit_uniform_runs(*length, begin, count, operation);
  }
  PerRowPatch rows(operation);
  for_each_run(g, begin, begin + count, [&](const Run& run) {
    const auto at = static_cast<size_t>(run.begin - begin), length = static_cast<size_t>(run.count);
    if (run.scale_stride == 0)
      operation.runs({at, length, static_cast<size_t>(run.scale), length});
    else
      rows.add(at, length, static_cast<size_t>(run.scale));
  });
  rows.flush();
}

}  // namespace wasmquant
