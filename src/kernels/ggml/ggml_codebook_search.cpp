#include "kernels/ggml/ggml_codebook_search.h"

#include <algorithm>

namespace wasmquant::kernels {
namespace {

/// How many different distances neighbours have.
uint32_t distances_of(GgmlType type) {
  if (type == GgmlType::iq2_s) return 1;
  return type == GgmlType::iq3_s || type == GgmlType::iq1_s || type == GgmlType::iq1_m ? 3 : 2;
}

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
  // Squared distances from the digits of a number to each entry, over elements i and beyond; most numbers change only the first.
  const uint32_t count = book_.count;
  std::vector<uint8_t> distances((book_.length + 1) * count);
  std::vector<uint8_t> elements(book_.length * count);  // [length, count]
  for (size_t i = 0; i < elements.size(); ++i) elements[i] = codes_of(static_cast<uint32_t>(i % count))[i / count];
  uint8_t digits[8] = {};
  for (uint32_t number = 0, changed = book_.length - 1; number < all; ++number) {
    if (number > 0)
      for (changed = 0; ++digits[changed] == book_.base; ++changed) digits[changed] = 0;
    for (uint32_t i = changed + 1; i-- > 0;) {
      const uint8_t *const codes = elements.data() + i * count, *const beyond = distances.data() + (i + 1) * count;
      uint8_t* const own = distances.data() + i * count;
      const int32_t digit = digits[i];
      for (uint32_t entry = 0, of = count; entry < of; ++entry) {
        const int32_t step = codes[entry] - digit;
        own[entry] = static_cast<uint8_t>(beyond[entry] + step * step);
      }
    }
    if (place_[number] >= 0) continue;
    bool is_met[256] = {};
    for (uint32_t entry = 0; entry < count; ++entry) is_met[distances[entry]] = true;
    const size_t start = near_.size();
    place_[number] = ~static_cast<int32_t>(start);
    near_.push_back(0);
    for (uint32_t distance = 0, left = distances_of(type); left > 0 && distance < 256; ++distance) {
      if (!is_met[distance]) continue;
      --left;
      const size_t begin = near_.size();
      near_.resize(begin + count);
      uint16_t* const to = near_.data() + begin;
      size_t met = 0;
      for (uint32_t entry = 0; entry < count; ++entry) {
        to[met] = static_cast<uint16_t>(entry);
        met += distances[entry] == distance;
      }
      near_.resize(begin + met);
    }
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
