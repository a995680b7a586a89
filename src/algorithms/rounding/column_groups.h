// Which columns of a linear layer's weight [rows, columns] share a scale, for column-wise algorithms.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "config/spec/spec.h"
#include "core/result.h"

namespace wasmquant {

/// Columns [begin, end).
struct ColumnRange {
  size_t begin, end;
  size_t count() const noexcept { return end - begin; }
};

/// The groups of consecutive columns into which each row falls: group_size columns for per_group, of which the last
/// group has fewer where they do not divide the row; all columns for per_channel (a scale per row), per_tensor and
/// plain casts (one scale in all).
class ColumnGroups {
 public:
  /// Errors: those of granularity_of; spec-invalid for scales along another axis.
  static Result<ColumnGroups> create(const QuantizationSpec& spec, uint64_t rows, uint64_t columns);

  /// Groups of a row.
  size_t count() const noexcept { return count_; }
  /// The group of a column.
  size_t of(size_t column) const noexcept { return column / size_; }
  ColumnRange operator[](size_t group) const noexcept {
    return {group * size_, std::min((group + 1) * size_, columns_)};
  }
  /// Scales of the weight, and the one of a row's group, in internal order (quantize/granularity.h).
  size_t scale_count() const noexcept { return is_one_scale_ ? 1 : rows_ * count_; }
  size_t scale_of(size_t row, size_t group) const noexcept { return is_one_scale_ ? 0 : row * count_ + group; }

 private:
  ColumnGroups(size_t rows, size_t columns, size_t size, bool is_one_scale) noexcept
      : rows_(rows),
        columns_(columns),
        size_(std::max<size_t>(size, 1)),
        count_(columns / size_ + (columns % size_ != 0)),
        is_one_scale_(is_one_scale) {}

  size_t rows_, columns_, size_, count_;
  bool is_one_scale_;
};

}  // namespace wasmquant
