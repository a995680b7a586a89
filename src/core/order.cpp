#include "core/order.h"

#include <algorithm>

#include "core/list.h"

namespace wasmquant {

// Bottom-up merge sort: stable, and a tenth of the code of std::sort.
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

List<uint32_t> sorted_by_name(size_t count, const NameOf& name_of) {
  return sorted_order(count, [&](uint32_t a, uint32_t b) { return name_of(a) < name_of(b); });
}

size_t first_after(size_t count, CallableRef<bool(size_t)> is_before) {
  size_t begin = 0, end = count;
  while (begin < end) {
    const size_t middle = begin + (end - begin) / 2;
    if (is_before(middle))
      begin = middle + 1;
    else
      end = middle;
  }
  return begin;
}

size_t place_of(std::string_view name, const List<uint32_t>& order, const NameOf& name_of) {
  return first_after(order.size(), [&](size_t i) { return name_of(order[i]) < name; });
}

std::optional<uint32_t> first_repeated(size_t count, const NameOf& name_of) {
  const List<uint32_t> order = sorted_by_name(count, name_of);
  std::optional<uint32_t> first;
  for (size_t i = 1; i < count; ++i)
    if (name_of(order[i - 1]) == name_of(order[i]) && (!first || order[i] < *first)) first = order[i];
  return first;
}

}  // namespace wasmquant
