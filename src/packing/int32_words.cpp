// Rows of little-endian 32-bit words, each row starting a new word (compressed-tensors pack-quantized, GPTQ qweight,
// AWQ qweight, AMD Quark int4). In memory a row is its bit stream, zero padded.
//   reorder: nibbles k = 0..7 hold elements 0 2 4 6 1 3 5 7, so that nibble pairs (k, k+4) hold neighbours
//   (AutoAWQ GEMM; what the dequantizing kernel wants).
#include <cassert>

#include "packing/octet.h"
#include "packing/packing.h"

namespace wasmquant::packing {
namespace {

template <uint32_t Bits>
void pack_rows(const uint8_t* codes, uint64_t rows, size_t columns, uint32_t offset, uint32_t* words) noexcept {
  const uint64_t width = words_per_row(columns, Bits);
  if (columns == 0) return;
  for (uint64_t row = 0; row < rows; ++row, codes += columns, words += width) {
    words[width - 1] = 0;
    pack_run<Bits>(codes, columns, offset, reinterpret_cast<uint8_t*>(words));
  }
}

template <uint32_t Bits>
void unpack_rows(const uint32_t* words, uint64_t rows, size_t columns, uint32_t offset, bool is_signed,
                 uint8_t* codes) noexcept {
  const auto unpack = is_signed ? unpack_run<Bits, true> : unpack_run<Bits, false>;
  const uint64_t width = words_per_row(columns, Bits);
  for (uint64_t row = 0; row < rows; ++row, codes += columns, words += width)
    unpack(reinterpret_cast<const uint8_t*>(words), columns, offset, codes);
}

// [bits - 2].
constexpr decltype(&pack_rows<2>) kPackRows[7] = {pack_rows<2>, pack_rows<3>, pack_rows<4>, pack_rows<5>,
                                                  pack_rows<6>, pack_rows<7>, pack_rows<8>};
constexpr decltype(&unpack_rows<2>) kUnpackRows[7] = {unpack_rows<2>, unpack_rows<3>, unpack_rows<4>, unpack_rows<5>,
                                                      unpack_rows<6>, unpack_rows<7>, unpack_rows<8>};

// Element pairs two apart meet first: bytes 0..3 = (0,2) (1,3) (4,6) (5,7), then the middle two bytes swap.
uint32_t to_reordered_word(uint64_t octet) noexcept {
  const uint64_t w = octet & in_each_byte(0xF);
  const uint64_t pairs = (w | w >> 12) & in_each_32(0xFFFF);
  return static_cast<uint32_t>((pairs & 0xFF) | (pairs >> 24 & 0xFF00) | (pairs << 8 & 0xFF0000) |
                               (pairs >> 16 & 0xFF000000));
}

uint64_t from_reordered_word(uint32_t word) noexcept {
  const uint64_t v = word;
  const uint64_t pairs = (v & 0xFF) | (v & 0xFF00) << 24 | (v >> 8 & 0xFF00) | (v & 0xFF000000) << 16;
  return (pairs | pairs << 12) & in_each_byte(0xF);
}

void pack_reordered_row(const uint8_t* codes, size_t columns, uint32_t* words) noexcept {
  size_t done = 0;
  for (; done + 8 <= columns; done += 8) *words++ = to_reordered_word(load_low(codes + done, 8));
  if (done < columns) *words = to_reordered_word(load_low(codes + done, columns - done));
}

template <bool Signed>
void unpack_reordered_row(const uint32_t* words, size_t columns, uint8_t* codes) noexcept {
  for (size_t done = 0; done < columns; done += 8) {
    const uint64_t octet = from_reordered_word(*words++);
    const uint64_t extended = Signed ? extend_sign<4>(octet) : octet;
    if (columns - done >= 8)
      std::memcpy(codes + done, &extended, 8);
    else
      std::memcpy(codes + done, &extended, columns - done);
  }
}

}  // namespace

void pack_words(const uint8_t* codes, uint64_t rows, uint64_t columns, uint32_t bits, uint32_t offset,
                uint32_t* words) noexcept {
  assert(bits >= 2 && bits <= 8);
  kPackRows[bits - 2](codes, rows, static_cast<size_t>(columns), offset, words);
}

void unpack_words(const uint32_t* words, uint64_t rows, uint64_t columns, uint32_t bits, uint32_t offset,
                  bool is_signed, uint8_t* codes) noexcept {
  assert(bits >= 2 && bits <= 8);
  kUnpackRows[bits - 2](words, rows, static_cast<size_t>(columns), offset, is_signed, codes);
}

void unpack_whole_words(const uint32_t* words, uint64_t rows, uint64_t columns, uint32_t bits, uint32_t offset,
                        uint8_t* codes) noexcept {
  const uint64_t per_word = 32 / bits, width = whole_words_per_row(columns, bits);
  const uint32_t mask = (uint32_t{1} << bits) - 1;
  for (uint64_t row = 0; row < rows; ++row, words += width)
    for (uint64_t column = 0; column < columns; ++column)
      *codes++ = static_cast<uint8_t>((words[column / per_word] >> (column % per_word * bits) & mask) - offset);
}

void pack_nibble_words(const uint8_t* codes, uint64_t rows, uint64_t columns, WordOrder order,
                       uint32_t* words) noexcept {
  const auto length = static_cast<size_t>(columns);
  if (order == WordOrder::order) return pack_rows<4>(codes, rows, length, 0, words);
  const uint64_t width = words_per_row(columns, 4);
  for (uint64_t row = 0; row < rows; ++row) pack_reordered_row(codes + row * columns, length, words + row * width);
}

void unpack_nibble_words(const uint32_t* words, uint64_t rows, uint64_t columns, WordOrder order, bool is_signed,
                         uint8_t* codes) noexcept {
  const auto length = static_cast<size_t>(columns);
  if (order == WordOrder::order) return unpack_rows<4>(words, rows, length, 0, is_signed, codes);
  const auto unpack = is_signed ? unpack_reordered_row<true> : unpack_reordered_row<false>;
  const uint64_t width = words_per_row(columns, 4);
  for (uint64_t row = 0; row < rows; ++row) unpack(words + row * width, length, codes + row * columns);
}

}  // namespace wasmquant::packing
