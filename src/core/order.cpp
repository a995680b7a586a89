#include "core/order.h"

#include <algorithm>

namespace wasmquant {

std::vector<uint32_t> sorted_order(size_t count, const IndexLess& less) {
  std::vector<uint32_t> order(count);
  for (size_t i = 0; i < count; ++i) order[i] = static_cast<uint32_t>(i);
  std::sort(order.begin(), order.end(), [&less](uint32_t a, uint32_t b) {
    if (less(a, b)) return true;
    return a < b && !less(b, a);
  });
  return order;
}

std::optional<uint32_t> first_repeated(size_t count, const IndexLess& less) {
  const std::vector<uint32_t> order = sorted_order(count, less);
  std::optional<uint32_t> first;
  for (size_t i = 1; i < count; ++i)
    if (!less(order[i - 1], order[i]) && (!first || order[i] < *first)) first = order[i];
  return first;
}

}  // namespace wasmquant
