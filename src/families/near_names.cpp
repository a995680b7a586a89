#include "families/near_names.h"

#include <algorithm>

#include "core/list.h"
#include "core/message.h"
#include "core/order.h"

namespace wasmquant::families {

std::string names_near(std::span<const std::string_view> names, std::string_view name, const char* guide) {
  constexpr size_t kShortest = 3, kMost = 3;
  const auto common = [&](uint32_t number) {
    const std::string_view other = names[number];
    size_t length = 0;
    while (length < std::min(other.size(), name.size()) && other[length] == name[length]) ++length;
    return length;
  };
  const List<uint32_t> order = sorted_order(
      names.size(), [&](uint32_t a, uint32_t b) { return common(a) != common(b) ? common(a) > common(b) : a < b; });
  std::string near;
  for (size_t i = 0; i < std::min(kMost, names.size()) && common(order[i]) >= kShortest; ++i)
    near += text_of("{}{}", near.empty() ? ", such as " : ", ", names[order[i]]);
  return text_of("{} types can{} (all are in {})", names.size(), near, guide);
}

}  // namespace wasmquant::families
