#include "algorithms/rounding/feedback_loop.h"

#include <algorithm>
#include <vector>

#include "algorithms/linear_algebra.h"

namespace wasmquant {
namespace {

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

struct Loop {
  const ErrorFeedback& feedback;
  size_t rows, columns;
  float* weight;
  std::vector<float> errors = {};  // e of the block, [columns of the block][rows]
  std::vector<float> values = {};  // w of the block before it was rounded, the same, where there is drift
  std::vector<float> strip = {};   // the block's weights, [columns of the block][ColumnStrip::kRows]

  void round_strip(size_t begin, size_t end, size_t row,
                   const CallableRef<void(size_t position, const ColumnStrip& strip)>& round) {
    const size_t count = std::min(ColumnStrip::kRows, rows - row);
    const ColumnStrip at{row, count, begin, end, strip.data(), weight, columns};
    for (size_t r = 0; r < count; ++r)
      for (size_t j = begin; j < end; ++j) at.at(j)[r] = weight[(row + r) * columns + j];
    for (size_t i = begin; i < end; ++i) {
      float* const error = errors.data() + (i - begin) * rows + row;
      float* const value = values.empty() ? nullptr : values.data() + (i - begin) * rows + row;
      std::copy_n(at.at(i), count, error);
      if (value != nullptr) std::copy_n(error, count, value);
      round(i, at);
      const float diagonal = feedback.factor[i * columns + i];
      for (size_t r = 0; r < count; ++r) error[r] = (error[r] - at.at(i)[r]) / diagonal;
      for (size_t j = i + 1; j < end; ++j) {
        const std::span<float> next(at.at(j), count);
        subtract_scaled(next, feedback.factor[i * columns + j], error);
        if (value != nullptr) subtract_scaled(next, -feedback.drift[i * columns + j], value);
      }
    }
    for (size_t r = 0; r < count; ++r)
      for (size_t j = begin; j < end; ++j) weight[(row + r) * columns + j] = at.at(j)[r];
  }

  void reach_later_columns(size_t begin, size_t end, float sign, const std::vector<float>& of_block,
                           const std::vector<float>& factor) {
    add_product(sign, {of_block.data(), rows}, {factor.data() + begin * columns + end, columns}, end - begin, rows,
                columns - end, {weight + end, columns});
  }
};

}  // namespace

void feed_errors(const ErrorFeedback& feedback, std::span<float> weight,
                 const CallableRef<size_t(size_t begin)>& end_of_block,
                 const CallableRef<void(size_t position, const ColumnStrip& strip)>& round) {
  const size_t columns = feedback.columns();
  if (columns == 0) return;
  Loop loop{feedback, weight.size() / columns, columns, weight.data()};
  permute_columns(weight, feedback.order, false);
  for (size_t begin = 0, end; begin < columns; begin = end) {
    end = end_of_block(begin);
    loop.strip.resize(std::max(loop.strip.size(), (end - begin) * ColumnStrip::kRows));
    loop.errors.resize(std::max(loop.errors.size(), (end - begin) * loop.rows));
    if (!feedback.drift.empty()) loop.values.resize(loop.errors.size());
    for (size_t row = 0; row < loop.rows; row += ColumnStrip::kRows) loop.round_strip(begin, end, row, round);
    loop.reach_later_columns(begin, end, -1, loop.errors, feedback.factor);
    if (!feedback.drift.empty()) loop.reach_later_columns(begin, end, 1, loop.values, feedback.drift);
  }
  permute_columns(weight, feedback.order, true);
}

}  // namespace wasmquant
