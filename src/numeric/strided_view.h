// Elements of an array at up to three strides: a part of a matrix, its transpose, every second column.
#pragma once
#include <array>
#include <cstdint>

namespace wasmquant {

/// Element (i, j, k) in row-major order of `sizes` is the array's element offset + i * strides[0] + j * strides[1] + k *
/// strides[2].
struct StridedView {
  uint64_t offset = 0;
  std::array<uint64_t, 3> sizes = {1, 1, 1}, strides = {0, 0, 0};

  constexpr uint64_t count() const noexcept { return sizes[0] * sizes[1] * sizes[2]; }
  /// Whether all of its elements are among `elements` of an array, without overflow for any field.
  constexpr bool fits(uint64_t elements) const noexcept {
    uint64_t last = offset, total = 1;
    for (int axis = 0; axis < 3; ++axis) {
      uint64_t reach = 0;
      if (sizes[axis] == 0 || __builtin_mul_overflow(sizes[axis] - 1, strides[axis], &reach) ||
          __builtin_add_overflow(last, reach, &last) || __builtin_mul_overflow(total, sizes[axis], &total))
        return false;
    }
    return last < elements;
  }
  /// Copies them behind `out`.
  template <class Array, class Out>
  void copy(const Array& from, Out& out) const {
    for (uint64_t i = 0; i < sizes[0]; ++i)
      for (uint64_t j = 0; j < sizes[1]; ++j)
        for (uint64_t k = 0; k < sizes[2]; ++k)
          out.push_back(from[offset + i * strides[0] + j * strides[1] + k * strides[2]]);
  }

  friend bool operator==(const StridedView&, const StridedView&) = default;
};

}  // namespace wasmquant
