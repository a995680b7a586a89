// Cuts a span of a flat tensor for the kernels.
//   runs:  consecutive elements that share a scale, many runs at once if they have one length
//   patch: a scale per element, the same for the rows below it (channels along the last axis, groups along another):
//          kPatch columns, whose scales are laid out once and used for every row
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "quantize/granularity.h"
#include "quantize/qparams.h"

namespace wasmquant {

/// Columns of a patch.
inline constexpr size_t kPatch = 256;
/// Runs per kernel call.
inline constexpr size_t kRuns = 64;

/// Elements [at, at + count) of the span: element at + i has scale `scale` + i / run. At most kRuns runs.
struct ScaleRuns {
  size_t at, count, scale, run;
  size_t runs() const noexcept { return (count + run - 1) / run; }
};

/// `rows` rows of `columns` elements, `pitch` apart; column i of every row has scale `scale` + i.
struct Patch {
  size_t at;  // offset in the span
  size_t rows, pitch, columns;
  size_t scale;
};

/// What is done to a span. Virtual instead of a template: there are many operations and one way to find the runs.
class RunOperation {
 public:
  virtual void runs(const ScaleRuns& r) noexcept = 0;
  virtual void patch(const Patch& p) noexcept = 0;

 protected:
  ~RunOperation() = default;
};

/// Calls `operation` for each run or patch of elements [begin, begin + count) of the flat tensor, in memory order.
void visit_runs(const Granularity& g, uint64_t begin, size_t count, RunOperation& operation) noexcept;

}  // namespace wasmquant
