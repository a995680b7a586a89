// Eights in their places, and the entries nearest to values.
#include "kernels/ggml/ggml_eights.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/ggml/ggml_codebook_search.h"
#include "kernels/ggml/ggml_layout.h"

namespace wasmquant::kernels {
namespace {

/// The elements of one entry, in units of the scale.
struct Entry {
  uint32_t number = 0;
  float cost = 0;
};

struct Values {
  float of[8];
  uint32_t count;

  Values(GgmlType type, uint32_t base, bool is_minus) : count(base) {
    const int8_t* const all = codebook_values(type);
    const float offset = !has_offsets(type) ? 0.0f : is_minus ? -1.0f : 1.0f;
    for (uint32_t code = 0; code < count; ++code) of[code] = static_cast<float>(all[code]) + offset;
  }
  uint8_t nearest(float position) const {
    uint8_t code = 0;
    while (code + 1u < count && position > 0.5f * (of[code] + of[code + 1])) ++code;
    return code;
  }
};

Entry nearest_entry(const CodebookSearch& search, const Values& values, const float* position, const float* weight) {
  const uint32_t length = search.book().length;
  const auto cost_of = [&](uint32_t entry) {
    float cost = 0;
    for (uint32_t i = 0; i < length; ++i) {
      const float difference = position[i] - values.of[search.codes_of(entry)[i]];
      cost += weight[i] * difference * difference;
    }
    return cost;
  };
  uint8_t codes[8] = {};
  for (uint32_t i = 0; i < length; ++i) codes[i] = values.nearest(position[i]);
  if (const int32_t own = search.entry_of(codes); own >= 0)
    return {static_cast<uint32_t>(own), cost_of(static_cast<uint32_t>(own))};
  Entry best = {0, std::numeric_limits<float>::infinity()};
  search.for_each_neighbour(codes, [&](uint32_t entry) {
    if (const float cost = cost_of(entry); cost < best.cost) best = {entry, cost};
  });
  return best;
}

/// Magnitudes in place of positions; where the number of signs must be even, the element that matters least takes another.
uint32_t take_signs(bool is_even, const float* weight, float* position) {
  uint32_t signs = 0, least = 0;
  bool is_odd = false;
  for (uint32_t i = 0; i < 8; ++i) {
    const bool is_negative = position[i] < 0;
    signs |= static_cast<uint32_t>(is_negative) << i;
    is_odd ^= is_negative;
    position[i] = std::fabs(position[i]);
    if (weight[i] * position[i] < weight[least] * position[least]) least = i;
  }
  if (!is_even || !is_odd) return signs;
  position[least] = -position[least];
  return signs ^ 1u << least;
}

void nearest_signed(GgmlType type, const float* weight, float* position, Eight& eight) {
  const CodebookSearch& search = search_of(type);
  const Values values(type, search.book().base, false);
  eight.signs = take_signs(has_even_signs(type), weight, position);
  eight.first = nearest_entry(search, values, position, weight).number;
  eight.second = search.book().length == 8 ? 0 : nearest_entry(search, values, position + 4, weight + 4).number;
}

void nearest_ternary(GgmlType type, const float* weight, const float* position, Eight& eight) {
  const CodebookSearch& search = search_of(type);
  Entry best = {0, std::numeric_limits<float>::infinity()};
  for (const bool is_minus : {eight.is_minus, !eight.is_minus}) {
    const Entry found = nearest_entry(search, Values(type, 3, is_minus), position, weight);
    if (!(found.cost < best.cost)) continue;
    best = found;
    eight.first = found.number;
    eight.is_minus = is_minus;
    if (type == GgmlType::iq1_s) return;
  }
}

}  // namespace

void nearest_eight(GgmlType type, float scale, const float* weight, float* x, Eight& eight) noexcept {
  float position[8];
  for (uint32_t i = 0; i < 8; ++i) position[i] = scale != 0 ? x[i] / scale : 0.0f;
  if (has_offsets(type))
    nearest_ternary(type, weight, position, eight);
  else
    nearest_signed(type, weight, position, eight);
  const CodebookSearch& search = search_of(type);
  const Values values(type, search.book().base, eight.is_minus);
  const uint32_t length = search.book().length;
  for (uint32_t i = 0; i < 8; ++i) {
    const float value = values.of[search.codes_of(i < length ? eight.first : eight.second)[i % length]];
    x[i] = scale * (eight.signs >> i & 1 ? -value : value);
  }
}

void put_signed_eight(GgmlType type, uint32_t g, const Eight& eight, uint8_t* out) noexcept {
  const uint32_t first = eight.first, second = eight.second, signs = eight.signs;
  const uint32_t run = g / 4, at = g % 4;
  const auto byte = [&](uint32_t offset, uint32_t value) { out[offset] = static_cast<uint8_t>(value); };
  const auto add = [&](uint32_t offset, uint32_t bits) { out[offset] = static_cast<uint8_t>(out[offset] | bits); };
  const auto add_signs = [&](uint32_t offset) {
    const uint32_t bits = (signs & 127) << (7 * at);
    for (uint32_t i = 0; i < 4; ++i) add(offset + i, bits >> (8 * i) & 255);
  };
  switch (type) {
    case GgmlType::iq2_xxs:
      byte(2 + 8 * run + at, first);
      return add_signs(6 + 8 * run);
    case GgmlType::iq2_xs:
      return store_u16(static_cast<uint16_t>(first | (signs & 127) << 9), out + 2 + 2 * g);
    case GgmlType::iq2_s:
      byte(2 + g, first);
      byte(34 + g, signs);
      return add(66 + run, first >> 8 << (2 * at));
    case GgmlType::iq3_xxs:
      byte(2 + 2 * g, first);
      byte(3 + 2 * g, second);
      return add_signs(66 + 4 * run);
    default:  // iq3_s
      byte(2 + 2 * g, first);
      byte(3 + 2 * g, second);
      byte(74 + g, signs);
      return add(66 + run, (first >> 8 | second >> 8 << 1) << (2 * at));
  }
}

void put_level(GgmlType type, uint32_t run, uint32_t level, uint8_t* out) noexcept {
  const uint32_t nibble = level << (run % 2 * 4);
  uint8_t* const byte = type == GgmlType::iq2_xxs   ? out + 9 + 8 * run
                        : type == GgmlType::iq3_xxs ? out + 69 + 4 * run
                        : type == GgmlType::iq2_xs  ? out + 66 + run / 2
                        : type == GgmlType::iq2_s   ? out + 74 + run / 2
                                                    : out + 106 + run / 2;
  const bool is_top = type == GgmlType::iq2_xxs || type == GgmlType::iq3_xxs;
  *byte = static_cast<uint8_t>(*byte | (is_top ? level << 4 : nibble));
}

void put_eights(GgmlType type, const Eight* eights, uint8_t* block) noexcept {
  if (!has_offsets(type)) {
    const uint32_t run = type == GgmlType::iq2_xs || type == GgmlType::iq2_s ? 2 : 4;
    std::memset(block + 2, 0, info_of(type).block_bytes - size_t{2});
    for (uint32_t i = 0; i < kEights; ++i) {
      put_signed_eight(type, i, eights[i], block);
      if (i % run == 0) put_level(type, i / run, eights[i].scale, block);
    }
    return;
  }
  const bool is_whole = type == GgmlType::iq1_s;
  std::memset(block + (is_whole ? 34 : 32), 0, 16);
  for (uint32_t i = 0; i < kEights; ++i) {
    const Eight& eight = eights[i];
    block[is_whole ? 2 + i : i] = static_cast<uint8_t>(eight.first);
    const uint32_t upper = eight.first >> 8;
    if (is_whole) {
      uint8_t* const word = block + 34 + i / 4 * 2;
      const uint32_t level = eight.scale << 12 | static_cast<uint32_t>(eight.is_minus) << 15;
      store_u16(static_cast<uint16_t>(load_u16(word) | upper << (3 * (i % 4)) | level), word);
    } else {
      const uint32_t nibble = upper | static_cast<uint32_t>(eight.is_minus) << 3;
      block[32 + i / 2] = static_cast<uint8_t>(block[32 + i / 2] | nibble << (i % 2 * 4));
    }
  }
}

}  // namespace wasmquant::kernels
