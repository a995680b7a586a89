// How blocks with codebooks are unpacked: eight elements at a time, type by type.
#include "kernels/ggml/ggml_codebook.h"

#include <bit>
#include <memory>

#include "kernels/ggml/ggml_eights.h"
#include "kernels/ggml/ggml_layout.h"
#include "numeric/half.h"

namespace wasmquant::kernels {
namespace {

struct PackedBook {
  GgmlType type;
  uint16_t count;
  uint8_t length, base, step;
  const char* gaps;
};
constexpr PackedBook kPacked[] = {
#define WASMQUANT_CODEBOOK(type, count, length, base, step, gaps) {GgmlType::type, count, length, base, step, gaps},
#include "kernels/ggml/ggml_codebooks.def"
#undef WASMQUANT_CODEBOOK
};
constexpr size_t kDigits = 0
#define WASMQUANT_CODEBOOK(type, count, length, base, step, gaps) +count* length
#include "kernels/ggml/ggml_codebooks.def"
#undef WASMQUANT_CODEBOOK
    ;

struct AllDigits {
  uint8_t digits[kDigits];
  AllDigits() noexcept {
    uint8_t* out = digits;
    for (const PackedBook& book : kPacked) {
      uint32_t number = 0;
      for (const char* gap = book.gaps; *gap; ++gap) {
        number += static_cast<uint32_t>(*gap - '(') * book.step;
        if (*gap == '~') continue;
        for (uint32_t i = 0, rest = number; i < book.length; ++i, rest /= book.base)
          *out++ = static_cast<uint8_t>(rest % book.base);
      }
    }
  }
};

/// Of the digits; iq1's are eighths, to which the offset is added.
constexpr int8_t kTwoBits[] = {8, 25, 43}, kThreeBits[] = {4, 12, 20, 28, 36, 44, 52, 62},
                 kOdd[] = {1, 3, 5, 7, 9, 11, 13, 15}, kEighths[] = {-8, 0, 8};

uint32_t load_u32(const uint8_t* in) { return load_u16(in) | static_cast<uint32_t>(load_u16(in + 2)) << 16; }

/// Seven signs and the one that makes their number even.
uint32_t even_signs(uint32_t seven) {
  seven &= 127;
  return seven | (static_cast<uint32_t>(std::popcount(seven)) & 1) << 7;
}

}  // namespace

const int8_t* codebook_values(GgmlType type) noexcept {
  if (type == GgmlType::iq3_xxs) return kThreeBits;
  if (type == GgmlType::iq3_s) return kOdd;
  return type == GgmlType::iq1_s || type == GgmlType::iq1_m ? kEighths : kTwoBits;
}

Eight load_eight(GgmlType type, const uint8_t* in, uint32_t i) noexcept {
  const uint32_t run = i / 4, at = i % 4;  // of 32 elements
  Eight e;
  switch (type) {
    case GgmlType::iq2_xxs:
    case GgmlType::iq3_xxs: {
      const bool is_two = type == GgmlType::iq2_xxs;
      const uint32_t word = load_u32(in + (is_two ? 6 + 8 * run : 66 + 4 * run));
      e.first = in[is_two ? 2 + 8 * run + at : 2 + 2 * i];
      e.second = in[3 + 2 * i];
      e.signs = even_signs(word >> (7 * at));
      e.scale = word >> 28;
      return e;
    }
    case GgmlType::iq2_xs: {
      const uint32_t word = load_u16(in + 2 + 2 * i);
      e.first = word & 511;
      e.signs = even_signs(word >> 9);
      e.scale = in[66 + run] >> (at / 2 * 4) & 15;
      return e;
    }
    case GgmlType::iq2_s:
      e.first = in[2 + i] | (in[66 + run] >> (2 * at) & 3u) << 8;
      e.signs = in[34 + i];
      e.scale = in[74 + run] >> (at / 2 * 4) & 15;
      return e;
    case GgmlType::iq3_s: {
      const uint32_t upper = static_cast<uint32_t>(in[66 + run]) >> (2 * at);
      e.first = in[2 + 2 * i] | (upper & 1) << 8;
      e.second = in[3 + 2 * i] | (upper & 2) << 7;
      e.signs = in[74 + i];
      e.scale = in[106 + run / 2] >> (run % 2 * 4) & 15;
      return e;
    }
    case GgmlType::iq1_s: {
      const uint32_t word = load_u16(in + 34 + 2 * run);
      e.first = in[2 + i] | (word >> (3 * at) & 7) << 8;
      e.scale = word >> 12 & 7;
      e.is_minus = word >> 15;
      return e;
    }
    default: {  // iq1_m
      const uint32_t nibble = static_cast<uint32_t>(in[32 + i / 2]) >> (i % 2 * 4);
      e.first = in[i] | (nibble & 7) << 8;
      e.scale = load_u16(in + 48 + i / 8 * 2) >> (3 * (i / 2 % 4)) & 7;
      e.is_minus = nibble >> 3 & 1;
      return e;
    }
  }
}

namespace {

float unit_of(GgmlType type, const uint8_t* in) {
  uint32_t d = load_u16(in);
  if (type == GgmlType::iq1_m) {
    d = 0;
    for (uint32_t i = 0; i < 4; ++i) d |= static_cast<uint32_t>(in[49 + 2 * i] >> 4) << (4 * i);
  }
  return from_half(static_cast<uint16_t>(d));
}

}  // namespace

Codebook codebook_of(GgmlType type) noexcept {
  static const auto all = std::make_unique<const AllDigits>();  // memory that only these types need
  const uint8_t* digits = all->digits;
  for (const PackedBook& book : kPacked) {
    if (book.type == type || book.type == GgmlType::iq1_s) return {book.count, book.length, book.base, digits};
    digits += book.count * book.length;
  }
  return {};
}

size_t unpack_codebook(GgmlType type, const uint8_t* in, uint8_t* codes, float* scale) noexcept {
  const Codebook book = codebook_of(type);
  const int8_t* const values = codebook_values(type);
  const bool is_one = has_offsets(type);
  const size_t run = type == GgmlType::iq2_xs || type == GgmlType::iq2_s || type == GgmlType::iq1_m ? 16 : 32;
  const float unit = unit_of(type, in);
  for (uint32_t i = 0; i < kSuperBlock / 8; ++i, codes += 8) {
    const Eight e = load_eight(type, in, i);
    const auto part = static_cast<float>(e.scale);
    scale[8 * i / run] = is_one                      ? unit * (2 * part + 1) * 0.125f
                         : type == GgmlType::iq3_s   ? unit * (2 * part + 1)
                         : type == GgmlType::iq3_xxs ? unit * (part + 0.5f) * 0.5f
                                                     : unit * (part + 0.5f) * 0.25f;
    for (uint32_t j = 0; j < 8; ++j) {
      const uint32_t index = j < book.length ? e.first : e.second;
      const int32_t value = values[book.digits[index * book.length + j % book.length]];
      codes[j] = static_cast<uint8_t>(is_one ? value + (e.is_minus ? -1 : 1) : e.signs >> j & 1 ? -value : value);
    }
  }
  return run;
}

}  // namespace wasmquant::kernels
