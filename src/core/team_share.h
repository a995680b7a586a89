// The part of some work that one of several workers does, who see the same data and exchange what they compute.
#pragma once
#include <cstddef>

namespace wasmquant {

/// One of `members`. One: it does all.
struct TeamShare {
  size_t member = 0, members = 1;

  /// Items [begin, end) of the work.
  struct Range {
    size_t begin, end;
    size_t count() const noexcept { return end - begin; }
  };
  /// This member's of `count` items, in whole steps but for the end: those of all members together are all items.
  Range of(size_t count, size_t step = 1) const noexcept {
    const size_t steps = (count + step - 1) / step;
    const auto bound = [&](size_t at) {
      return steps * at / members * step < count ? steps * at / members * step : count;
    };
    return {bound(member), bound(member + 1)};
  }
  /// Whether one whole item is this member's.
  bool has(size_t item) const noexcept { return item % members == member; }
  TeamShare other(size_t which) const noexcept { return {which, members}; }
};

}  // namespace wasmquant
