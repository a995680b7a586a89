// The loop of GPTQ (gptq.h): columns are rounded one after another, in the order of the feedback, and later columns
// compensate for the error of each. Blocks of columns whose errors reach the columns behind in one product, and strips of
// rows that stay in the cache.
#pragma once
#include <cstddef>
#include <span>

#include "algorithms/rounding/error_feedback.h"
#include "core/order.h"

namespace wasmquant {

/// The current values of some rows. Positions are places in feedback.order.
struct ColumnStrip {
  static constexpr size_t kRows = 64;  // at most: 128 columns of them fit the L1 cache

  size_t row, count;    // rows
  size_t begin, end;    // positions of the block
  float* values;        // [end - begin][kRows]
  const float* weight;  // [rows, columns], by position: current from `end` on
  size_t columns;

  /// The rows' values at a position of the block.
  float* at(size_t position) const noexcept { return values + (position - begin) * kRows; }
  /// The value of row `row` + r at any position that is not rounded yet.
  float current(size_t r, size_t position) const noexcept {
    return position < end ? at(position)[r] : weight[(row + r) * columns + position];
  }
};

/// weight [rows, columns] becomes its rounded values. `end_of_block`: the position behind the block that begins at one.
/// `round` replaces the values of the strip at a position by rounded ones, at every position of a strip in turn.
void feed_errors(const ErrorFeedback& feedback, std::span<float> weight,
                 const CallableRef<size_t(size_t begin)>& end_of_block,
                 const CallableRef<void(size_t position, const ColumnStrip& strip)>& round);

}  // namespace wasmquant
