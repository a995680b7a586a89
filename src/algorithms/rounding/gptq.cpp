// The loop over blocks of columns, strips of rows inside each block, and the order of columns (act-order).
#include "algorithms/rounding/gptq.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "algorithms/linear_algebra.h"
#include "algorithms/rounding/column_groups.h"
#include "core/message.h"
#include "kernels/kernels.h"
#include "observers/observer.h"
#include "observers/search/per_scale_search.h"
#include "quantize/quantize.h"

namespace wasmquant {
namespace {

// Rows of a block processed together: 128 columns of them fit the L1 cache.
constexpr size_t kGptqStripRows = 64;

// One call of gptq(). Columns are in feedback.order.
struct Gptq {
  const ErrorFeedback& feedback;
  const QuantizationSpec& spec;
  size_t rows, columns;
  float* weight;
  uint8_t* codes;
  ColumnGroups groups;
  float second_scale;
  ScaleRule rule;  // of groups that are not static
  bool searches;   // whether minimum and maximum do not settle a scale
  bool static_groups = true;
  std::vector<QParams> qparams = {};  // [groups][rows]
  std::vector<float> errors = {};     // e of the block, [columns of the block][rows]
  std::vector<float> values = {};     // w of the block before it was rounded, the same, where there is drift
  std::vector<float> strip = {};      // the block's weights, [columns of the block][kGptqStripRows]

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

  // Scales of the group for rows [row, row + count), from the current weight; columns [begin, end) are in the strip.
  void choose_scales(size_t group, size_t begin, size_t end, size_t row, size_t count) {
    const ColumnRange range = groups[group];
    const size_t width = range.count();
    std::vector<float> current(count * width), squares;
    for (size_t r = 0; r < count; ++r)
      for (size_t j = range.begin; j < range.end; ++j)
        current[r * width + j - range.begin] =
            j < end ? strip[(j - begin) * kGptqStripRows + r] : weight[(row + r) * columns + j];
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

  // Codes of the strip's column and its error; its value replaces the weight.
  void quantize_column(size_t i, size_t row, size_t count, float* w, float* error) noexcept {
    const size_t column = feedback.order[i], bytes = code_bytes_of(spec);
    const size_t group = groups.of(static_groups ? column : i);
    const std::span<const QParams> scales(qparams.data() + group * rows + row, count);
    Granularity g;
    g.axis = count;  // one scale per element
    alignas(4) uint8_t code[4 * kGptqStripRows];
    float value[kGptqStripRows];
    quantize(g, spec, scales, kernels::Path::fake, {w, count}, 0, code);
    dequantize(g, spec, scales, code, count, 0, value);
    const float diagonal = feedback.factor[i * columns + i];
    for (size_t r = 0; r < count; ++r) {
      error[r] = (w[r] - value[r]) / diagonal;
      w[r] = value[r];
      std::copy_n(code + r * bytes, bytes, codes + ((row + r) * columns + column) * bytes);
    }
  }

  void quantize_strip(size_t begin, size_t end, size_t row) {
    const size_t count = std::min(kGptqStripRows, rows - row);
    for (size_t r = 0; r < count; ++r)
      for (size_t j = begin; j < end; ++j) strip[(j - begin) * kGptqStripRows + r] = weight[(row + r) * columns + j];
    for (size_t i = begin; i < end; ++i) {
      if (const size_t group = groups.of(i); !static_groups && i == groups[group].begin)
        choose_scales(group, begin, end, row, count);
      float* const error = errors.data() + (i - begin) * rows + row;
      float* const w = strip.data() + (i - begin) * kGptqStripRows;
      float* const value = values.empty() ? nullptr : values.data() + (i - begin) * rows + row;
      if (value != nullptr) std::copy_n(w, count, value);
      quantize_column(i, row, count, w, error);
      for (size_t j = i + 1; j < end; ++j) {
        const std::span<float> next(strip.data() + (j - begin) * kGptqStripRows, count);
        subtract_scaled(next, feedback.factor[i * columns + j], error);
        if (value != nullptr) subtract_scaled(next, -feedback.drift[i * columns + j], value);
      }
    }
    for (size_t r = 0; r < count; ++r)
      for (size_t j = begin; j < end; ++j) weight[(row + r) * columns + j] = strip[(j - begin) * kGptqStripRows + r];
  }

  void run(size_t block_size) {
    block_size = std::min(block_size, columns);
    errors.resize(block_size * rows);
    if (!feedback.drift.empty()) values.resize(errors.size());
    strip.resize(block_size * kGptqStripRows);
    for (size_t begin = 0, end; begin < columns; begin = end) {
      end = end_of_block(begin, block_size);
      for (size_t row = 0; row < rows; row += kGptqStripRows) quantize_strip(begin, end, row);
      add_product(-1, {errors.data(), rows}, {feedback.factor.data() + begin * columns + end, columns}, end - begin,
                  rows, columns - end, {weight + end, columns});
      if (!values.empty())
        add_product(1, {values.data(), rows}, {feedback.drift.data() + begin * columns + end, columns}, end - begin,
                    rows, columns - end, {weight + end, columns});
    }
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

// Each row's columns in `order`, or back.
void permute_columns(std::span<float> weight, const std::vector<uint32_t>& order, bool back) {
  std::vector<float> row(order.size());
  for (size_t at = 0; at < weight.size(); at += row.size()) {
    std::copy_n(weight.data() + at, row.size(), row.data());
    for (size_t i = 0; i < row.size(); ++i)
      if (back)
        weight[at + order[i]] = row[i];
      else
        weight[at + i] = row[order[i]];
  }
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
            weight.data(),
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
  permute_columns(weight, feedback.order, false);
  work.run(options.block_size);
  permute_columns(weight, feedback.order, true);
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
