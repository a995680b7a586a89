// 32-bit words: the layouts of compressed-tensors, GPTQ and AWQ written out by hand, and identity over all row lengths.
#include <doctest/doctest.h>

#include <array>
#include <random>
#include <vector>

#include "packing/packing.h"
#include "packing/random_codes.h"

using namespace wasmquant::packing;
using test_packing::random_codes;
using Bytes = std::vector<uint8_t>;
using Words = std::vector<uint32_t>;

namespace {

constexpr uint32_t kInt32WordsGuard = 0xA5A5A5A5;

// Straight from the contract: element i of a row in bits i*bits of that row, offset added, zeros at the end.
Words slow_words(const Bytes& codes, size_t rows, size_t columns, uint32_t bits, uint32_t offset) {
  const auto width = static_cast<size_t>(words_per_row(columns, bits));
  Words words(rows * width, 0);
  for (size_t r = 0; r < rows; ++r)
    for (size_t c = 0; c < columns; ++c)
      for (size_t bit = 0; bit < bits; ++bit) {
        const size_t at = c * bits + bit;
        words[r * width + at / 32] |= ((codes[r * columns + c] + offset) >> bit & 1u) << at % 32;
      }
  return words;
}

}  // namespace

TEST_CASE("words of codes of 2 to 8 bits: every row length, with and without offset, and back") {
  for (uint32_t bits = 2; bits <= 8; ++bits)
    for (const bool is_signed : {false, true})
      for (const uint32_t offset : {0u, 1u << (bits - 1)})
        for (size_t columns = 0; columns <= 70; ++columns) {
          CAPTURE(bits);
          CAPTURE(is_signed);
          CAPTURE(offset);
          CAPTURE(columns);
          const size_t rows = 3;
          const Bytes codes = random_codes(rows * columns, bits, is_signed, static_cast<uint32_t>(columns + bits));
          Words words(rows * static_cast<size_t>(words_per_row(columns, bits)) + 1, kInt32WordsGuard);
          pack_words(codes.data(), rows, columns, bits, offset, words.data());
          CHECK(words.back() == kInt32WordsGuard);
          words.pop_back();
          CHECK(words == slow_words(codes, rows, columns, bits, offset));

          Bytes unpacked(codes.size() + 1, 0x5A);
          unpack_words(words.data(), rows, columns, bits, offset, is_signed, unpacked.data());
          CHECK(unpacked.back() == 0x5A);
          unpacked.pop_back();
          CHECK(unpacked == codes);
        }
}

TEST_CASE("compressed-tensors: int4 stored as code + 8, the first code in the lowest nibble") {
  const Bytes codes = {0xF8, 0xF9, 0xFF, 0, 1, 2, 6, 7, 0xF8};  // -8 -7 -1 0 1 2 6 7, -8
  Words words(2);
  pack_words(codes.data(), 1, 9, 4, 8, words.data());
  CHECK(words == Words{0xFEA98710, 0x00000000});
}

TEST_CASE("AWQ order: nibble k holds element 0 2 4 6 1 3 5 7") {
  constexpr std::array<uint32_t, 8> kOrder = {0, 2, 4, 6, 1, 3, 5, 7};
  const Bytes codes = {0, 1, 2, 3, 4, 5, 6, 7};
  uint32_t word = 0;
  pack_nibble_words(codes.data(), 1, 8, WordOrder::reorder, &word);
  CHECK(word == 0x75316420);
  for (uint32_t k = 0; k < 8; ++k) CHECK((word >> (4 * k) & 0xF) == kOrder[k]);
  pack_nibble_words(codes.data(), 1, 8, WordOrder::order, &word);
  CHECK(word == 0x76543210);
}

TEST_CASE("nibble words: every row length in both orders, and back") {
  constexpr std::array<std::array<uint32_t, 8>, 2> kOrders = {{{0, 1, 2, 3, 4, 5, 6, 7}, {0, 2, 4, 6, 1, 3, 5, 7}}};
  for (const WordOrder order : {WordOrder::order, WordOrder::reorder})
    for (const bool is_signed : {false, true})
      for (size_t columns = 0; columns <= 70; ++columns) {
        CAPTURE(columns);
        const size_t rows = 2, width = static_cast<size_t>(words_per_row(columns, 4));
        const Bytes codes = random_codes(rows * columns, 4, is_signed, static_cast<uint32_t>(columns));
        Words words(rows * width + 1, kInt32WordsGuard);
        pack_nibble_words(codes.data(), rows, columns, order, words.data());
        CHECK(words.back() == kInt32WordsGuard);
        for (size_t r = 0; r < rows; ++r)
          for (size_t k = 0; k < width * 8; ++k) {
            const size_t column = k / 8 * 8 + kOrders[static_cast<size_t>(order)][k % 8];
            const uint32_t expected = column < columns ? codes[r * columns + column] & 0xFu : 0;
            CHECK((words[r * width + k / 8] >> (k % 8 * 4) & 0xF) == expected);
          }
        Bytes unpacked(codes.size() + 1, 0x5A);
        unpack_nibble_words(words.data(), rows, columns, order, is_signed, unpacked.data());
        CHECK(unpacked.back() == 0x5A);
        unpacked.pop_back();
        CHECK(unpacked == codes);
      }
}
