// The search for the clipping of each group, in loops over candidates' weights.
#include <algorithm>
#include <limits>
#include <vector>

#include "algorithms/rounding/column_groups.h"
#include "algorithms/scaling/awq.h"
#include "core/message.h"
#include "kernels/kernels.h"
#include "observers/observer.h"
#include "quantize/quantize.h"

namespace wasmquant {
namespace {

constexpr size_t kClipSteps = 10;
constexpr float kClipGrid = 20;
constexpr size_t kClipRows = 64;

void clamp_row(const float* __restrict w, size_t columns, float limit, float* __restrict clipped) noexcept {
  for (size_t j = 0; j < columns; ++j) clipped[j] = std::clamp(w[j], -limit, limit);
}

void subtract_row(const float* __restrict w, size_t columns, float* __restrict difference) noexcept {
  for (size_t j = 0; j < columns; ++j) difference[j] -= w[j];
}

// One group of columns of at most kClipRows rows, of the weight that begins at the group's first column; `inputs` are the
// group's.
void clip_group(Matrix weight, size_t rows, const QuantizationSpec& spec, const OutputError& inputs) {
  const size_t columns = inputs.columns();
  const Granularity g = one_scale_per_run(rows, columns);
  std::vector<float> clipped(rows * columns), difference(rows * columns), largest(rows), best_limit(rows);
  std::vector<double> best(rows, std::numeric_limits<double>::infinity()), sums(rows);
  for (size_t i = 0; i < rows; ++i)
    largest[i] = kernels::reduce_absmax({weight.data + i * weight.stride, columns}).value;
  best_limit = largest;
  for (size_t step = 0; step < kClipSteps; ++step) {
    const float shrink = 1 - static_cast<float>(step) / kClipGrid;
    for (size_t i = 0; i < rows; ++i)
      clamp_row(weight.data + i * weight.stride, columns, largest[i] * shrink, clipped.data() + i * columns);
    RangeObserver observer(g, spec);
    observer.update(clipped, 0);
    fake_quantize(g, spec, observer.finish(), clipped, 0, difference.data());
    for (size_t i = 0; i < rows; ++i)
      subtract_row(weight.data + i * weight.stride, columns, difference.data() + i * columns);
    inputs.sum_squares({difference.data(), columns}, 0, columns, sums);
    for (size_t i = 0; i < rows; ++i) {
      if (!(sums[i] < best[i])) continue;
      best[i] = sums[i];
      best_limit[i] = largest[i] * shrink;
    }
  }
  for (size_t i = 0; i < rows; ++i) {
    std::vector<float>& row = clipped;
    float* const to = weight.data + i * weight.stride;
    std::copy_n(to, columns, row.data());
    clamp_row(row.data(), columns, best_limit[i], to);
  }
}

}  // namespace

Status clip_weight(std::span<float> weight, uint64_t rows, const QuantizationSpec& spec,
                   std::span<const float> hessian) {
  if (weight.empty()) return {};
  const auto height = static_cast<size_t>(rows);
  const size_t columns = height == 0 ? 0 : weight.size() / height;
  if (weight.size() != rows * columns || hessian.size() != columns * columns)
    return error_at(ErrorCode::shape_mismatch, "", "the lengths {} and {} do not match", weight.size(), hessian.size());
  TRY(groups, ColumnGroups::create(spec, rows, columns));
  if (spec.qscheme == QScheme::per_tensor)
    return Error{ErrorCode::spec_invalid, "", "per_tensor has no groups to clip; use per_channel or per_group"};
  for (size_t group = 0; group < groups.count(); ++group) {
    const auto [begin, end] = groups[group];
    std::vector<float> block;
    for (size_t i = begin; i < end; ++i)
      block.insert(block.end(), hessian.begin() + static_cast<ptrdiff_t>(i * columns + begin),
                   hessian.begin() + static_cast<ptrdiff_t>(i * columns + end));
    TRY(inputs, OutputError::of_hessian(std::move(block), end - begin));
    for (size_t row = 0; row < height; row += kClipRows)
      clip_group({weight.data() + row * columns + begin, columns}, std::min(kClipRows, height - row), spec, inputs);
  }
  return {};
}

}  // namespace wasmquant
