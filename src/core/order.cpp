#include "core/order.h"

#include <algorithm>

#include "core/list.h"

namespace wasmquant {

// Merge sort, bottom up: stable, so equal elements stay by index, and a tenth of the code of std::sort.
List<uint32_t> sorted_order(size_t count, const IndexLess& less) {
  List<uint32_t> order(count), merged(count);
  for (size_t i = 0; i < count; ++i) order[i] = static_cast<uint32_t>(i);
  for (size_t width = 1; width < count; width *= 2) {
    for (size_t begin = 0; begin < count; begin += 2 * width) {
      const size_t middle = std::min(begin + width, count), end = std::min(middle + width, count);
      size_t left = begin, right = middle;
      for (size_t i = begin; i < end; ++i) {
        const bool take_right = left == middle || (right < end && less(order[right], order[left]));
        merged[i] = order[take_right ? right++ : left++];
      }
    }
    order.swap(merged);
  }
  return order;
}

std::optional<uint32_t> first_repeated(size_t count, const IndexLess& less) {
  const List<uint32_t> order = sorted_order(count, less);
  std::optional<uint32_t> first;
  for (size_t i = 1; i < count; ++i)
    if (!less(order[i - 1], order[i]) && (!first || order[i] < *first)) first = order[i];
  return first;
}

}  // namespace wasmquant
