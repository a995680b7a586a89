#include "kernels/ggml/ggml_codebook_search.h"

#include <algorithm>

namespace wasmquant::kernels {
namespace {

/// How many different distances neighbours have.
uint32_t distances_of(GgmlType type) {
  if (type == GgmlType::iq2_s) return 1;
  return type == GgmlType::iq3_s || type == GgmlType::iq1_s || type == GgmlType::iq1_m ? 3 : 2;
}

constexpr uint8_t kUnseen = 255;  // distances are at most 4 * 7^2 = 196

template <GgmlType type>
const CodebookSearch& made_once() {
  static const CodebookSearch search(type);
  return search;
}

}  // namespace

uint32_t CodebookSearch::number_of(const uint8_t* codes) const noexcept {
  uint32_t number = 0;
  for (uint32_t i = book_.length; i-- > 0;) number = number * book_.base + codes[i];
  return number;
}

int32_t CodebookSearch::entry_of(const uint8_t* codes) const noexcept {
  const int32_t place = place_[number_of(codes)];
  return place < 0 ? -1 : place;
}

CodebookSearch::CodebookSearch(GgmlType type) : book_(codebook_of(type)) {
  uint32_t all = 1;
  for (uint32_t i = 0; i < book_.length; ++i) all *= book_.base;
  place_.assign(all, -1);
  for (uint32_t entry = 0; entry < book_.count; ++entry)
    place_[number_of(codes_of(entry))] = static_cast<int32_t>(entry);
  std::vector<uint8_t> distance(book_.count);
  for (uint32_t number = 0; number < all; ++number) {
    if (place_[number] >= 0) continue;
    uint8_t digits[8], wanted[3] = {kUnseen, kUnseen, kUnseen};  // the least distances, ascending
    for (uint32_t i = 0, rest = number; i < book_.length; ++i, rest /= book_.base)
      digits[i] = static_cast<uint8_t>(rest % book_.base);
    for (uint32_t entry = 0; entry < book_.count; ++entry) {
      uint32_t sum = 0;
      for (uint32_t i = 0; i < book_.length; ++i) {
        const int32_t step = codes_of(entry)[i] - digits[i];
        sum += static_cast<uint32_t>(step * step);
      }
      auto other = distance[entry] = static_cast<uint8_t>(sum);
      for (uint8_t& each : wanted) {
        if (other == each) break;
        if (other < each) std::swap(other, each);
      }
    }
    const size_t start = near_.size();
    place_[number] = ~static_cast<int32_t>(start);
    near_.push_back(0);
    for (uint32_t k = 0; k < distances_of(type); ++k)
      for (uint32_t entry = 0; entry < book_.count; ++entry)
        if (distance[entry] == wanted[k]) near_.push_back(static_cast<uint16_t>(entry));
    near_[start] = static_cast<uint16_t>(near_.size() - start - 1);
  }
}

const CodebookSearch& search_of(GgmlType type) noexcept {
  switch (type) {
    case GgmlType::iq2_xxs:
      return made_once<GgmlType::iq2_xxs>();
    case GgmlType::iq2_xs:
      return made_once<GgmlType::iq2_xs>();
    case GgmlType::iq2_s:
      return made_once<GgmlType::iq2_s>();
    case GgmlType::iq3_xxs:
      return made_once<GgmlType::iq3_xxs>();
    case GgmlType::iq3_s:
      return made_once<GgmlType::iq3_s>();
    default:
      return made_once<GgmlType::iq1_s>();
  }
}

}  // namespace wasmquant::kernels
