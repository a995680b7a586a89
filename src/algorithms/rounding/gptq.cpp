// Scales and codes of columns in the loop of feedback_loop.h, and the order of columns (act-order).
#include "algorithms/rounding/gptq.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "algorithms/rounding/column_groups.h"
#include "algorithms/rounding/feedback_loop.h"
#include "core/message.h"
#include "kernels/kernels.h"
#include "observers/observer.h"
#include "observers/search/per_scale_search.h"
#include "quantize/quantize.h"

namespace wasmquant {
namespace {

// One call of gptq(). Columns are in feedback.order.
struct Gptq {
  const ErrorFeedback& feedback;
  const QuantizationSpec& spec;
  size_t rows, columns;
  uint8_t* codes;
  ColumnGroups groups;
  float second_scale;
  ScaleRule rule;  // of groups that are not static
  bool searches;   // whether minimum and maximum do not settle a scale
  bool static_groups = true;
  std::vector<QParams> qparams = {};  // [groups][rows]

  // A group that begins in [begin, end) and reaches past it needs columns not updated yet: it begins a new block.
  size_t end_of_block(size_t begin, size_t block_size) const noexcept {
    const size_t end = std::min(begin + block_size, columns);
    const ColumnRange last = groups[groups.of(end - 1)];
    const bool reaches_past = last.begin > begin && last.end > end;
    return !static_groups && reaches_past ? last.begin : end;
  }

  // Of x [count, columns]. `squares`: of the columns, which weigh the errors of refit scales.
  std::vector<QParams> searched_scales(std::span<const float> x, size_t count, std::span<const float> squares) const {
    PerScaleSearch search(spec, info_of(spec.observer).method, spec.observer_options, second_scale);
    const float* const weights = spec.scale_refit && !squares.empty() ? squares.data() : nullptr;
    const size_t width = x.size() / count;
    std::vector<QParams> found;
    for (size_t row = 0; row < count; ++row) found.push_back(search(x.subspan(row * width, width), weights).qparams);
    return found;
  }

  // Scales of the group for the strip's rows, from the current weight.
  void choose_scales(size_t group, const ColumnStrip& strip) {
    const ColumnRange range = groups[group];
    const size_t width = range.count(), row = strip.row, count = strip.count;
    std::vector<float> current(count * width), squares;
    for (size_t r = 0; r < count; ++r)
      for (size_t j = range.begin; j < range.end; ++j) current[r * width + j - range.begin] = strip.current(r, j);
    if (searches) {
      for (size_t j = range.begin; j < range.end && !feedback.squares.empty(); ++j)
        squares.push_back(feedback.squares[feedback.order[j]]);
      const std::vector<QParams> found = searched_scales(current, count, squares);
      std::copy(found.begin(), found.end(), qparams.begin() + static_cast<ptrdiff_t>(group * rows + row));
      return;
    }
    for (size_t r = 0; r < count; ++r) {
      const kernels::Extent extent = kernels::reduce_extent({current.data() + r * width, width});
      qparams[group * rows + row + r] = rule(extent.min, extent.max);
    }
  }

  // Codes of the strip's column, whose values replace the weight.
  void round_column(size_t i, const ColumnStrip& strip) {
    const size_t row = strip.row, count = strip.count;
    if (const size_t group = groups.of(i); !static_groups && i == groups[group].begin) choose_scales(group, strip);
    const size_t column = feedback.order[i], bytes = code_bytes_of(spec);
    const size_t group = groups.of(static_groups ? column : i);
    const std::span<const QParams> scales(qparams.data() + group * rows + row, count);
    Granularity g;
    g.axis = count;  // one scale per element
    alignas(4) uint8_t code[4 * ColumnStrip::kRows];
    quantize(g, spec, scales, kernels::Path::fake, {strip.at(i), count}, 0, code);
    dequantize(g, spec, scales, code, count, 0, strip.at(i));
    for (size_t r = 0; r < count; ++r)
      std::copy_n(code + r * bytes, bytes, codes + ((row + r) * columns + column) * bytes);
  }

  void run(std::span<float> weight, size_t block_size) {
    block_size = std::min(block_size, columns);
    feed_errors(
        feedback, weight, [&](size_t begin) { return end_of_block(begin, block_size); },
        [&](size_t i, const ColumnStrip& strip) { round_column(i, strip); });
  }
};

Status check(const ErrorFeedback& feedback, const GptqOptions& options, uint64_t rows, std::span<const float> weight,
             size_t code_count) {
  const size_t columns = feedback.columns();
  if (!feedback.drift.empty() && feedback.drift.size() != columns * columns)
    return error_at(ErrorCode::shape_mismatch, "", "a drift of {} values does not fit {} columns",
                    feedback.drift.size(), columns);
  if (weight.size() != rows * columns || code_count != weight.size())
    return error_at(ErrorCode::shape_mismatch, "", "{} weights and {} codes do not fit {} rows of {}", weight.size(),
                    code_count, rows, columns);
  if (options.block_size == 0) return Error{ErrorCode::argument_invalid, "", "block_size 0: a block has columns"};
  if (const int64_t at = kernels::find_non_finite(weight); at >= 0)
    return error_at(ErrorCode::value_not_finite, "", "weight element {} is NaN or infinite", at);
  return {};
}

}  // namespace

Result<std::vector<QParams>> gptq(const ErrorFeedback& feedback, const QuantizationSpec& spec,
                                  const GptqOptions& options, uint64_t rows, std::span<float> weight,
                                  std::span<uint8_t> codes, std::span<const QParams> given, float second_scale) {
  const size_t columns = feedback.columns();
  TRY(g, granularity_of({rows, columns}, spec));
  TRY(groups, ColumnGroups::create(spec, rows, columns));
  const auto height = static_cast<size_t>(rows);
  TRY_VOID(check(feedback, options, rows, weight, codes.size() / code_bytes_of(spec)));
  if (!given.empty() && given.size() != groups.scale_count())
    return error_at(ErrorCode::shape_mismatch, "", "found {} scales; the spec needs {}", given.size(),
                    groups.scale_count());

  for (size_t at = 0; at < weight.size(); at += columns)
    for (const uint32_t j : feedback.dead) weight[at + j] = 0;
  RangeObserver observer(g, spec);
  observer.update(weight, 0);
  std::vector<QParams> qparams = observer.finish();  // [rows][groups], or one
  if (!given.empty()) qparams.assign(given.begin(), given.end());
  if (weight.empty()) return qparams;

  if (spec.scale_format == ScaleFormat::e4m3 && second_scale == 0) second_scale = observer.second_scale();
  Gptq work{feedback,
            spec,
            height,
            columns,
            codes.data(),
            groups,
            second_scale,
            ScaleRule(spec, second_scale),
            (spec.qscheme == QScheme::per_group || info_of(spec.observer).is_per_scale()) && !needs_only_range(spec)};
  const bool is_static = options.static_groups && !options.act_group_aware;
  work.static_groups = is_static || groups.count() == 1 || !given.empty();
  if (work.searches && given.empty() && work.static_groups)
    for (size_t group = 0; group < groups.count(); ++group) {
      const ColumnRange range = groups[group];
      std::vector<float> part;
      for (size_t row = 0; row < height; ++row)
        part.insert(part.end(), weight.data() + row * columns + range.begin, weight.data() + row * columns + range.end);
      const bool has_squares = !feedback.squares.empty();
      const std::vector<QParams> found = work.searched_scales(
          part, height,
          has_squares ? std::span(feedback.squares).subspan(range.begin, range.count()) : std::span<const float>());
      for (size_t row = 0; row < height; ++row) qparams[groups.scale_of(row, group)] = found[row];
    }
  for (size_t group = 0; group < groups.count(); ++group)
    for (size_t row = 0; row < height; ++row) work.qparams.push_back(qparams[groups.scale_of(row, group)]);
  work.run(weight, options.block_size);
  if (!work.static_groups)
    for (size_t at = 0; at < groups.count(); ++at) {
      const size_t group = options.act_group_aware ? groups.of(feedback.order[groups[at].begin]) : at;
      for (size_t row = 0; row < height; ++row) qparams[groups.scale_of(row, group)] = work.qparams[at * height + row];
    }
  return qparams;
}

std::vector<uint32_t> group_index(const std::vector<uint32_t>& order, uint64_t group_size) {
  std::vector<uint32_t> index(order.size());
  bool is_in_order = true;
  for (size_t i = 0; i < order.size(); ++i) {
    index[order[i]] = static_cast<uint32_t>(i / group_size);
    is_in_order &= i / group_size == order[i] / group_size;
  }
  if (is_in_order) index.clear();
  return index;
}

}  // namespace wasmquant
