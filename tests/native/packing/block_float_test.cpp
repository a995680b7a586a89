#include <doctest/doctest.h>

#include <random>
#include <vector>

#include "packing/packing.h"

using namespace wasmquant;
using namespace wasmquant::packing;

TEST_CASE("block floats: bytes of a block") {
  CHECK(block_bytes(block_float_of(Dtype::mx6)) == 12);
  CHECK(block_bytes(block_float_of(Dtype::mx6, 32)) == 23);
  CHECK(block_bytes(block_float_of(Dtype::mx9)) == 18);
  CHECK(block_bytes(block_float_of(Dtype::bfp16)) == 9);
  CHECK(block_row_bytes(17, block_float_of(Dtype::mx9)) == 36);
}

TEST_CASE("block floats: the layout, byte for byte") {
  const std::vector<int8_t> codes = {1, -1, 15, -15, 0, 2, 4, 8};
  const uint8_t exponent = 130;
  const std::vector<uint8_t> shifts = {1, 0, 0, 1};
  std::vector<uint8_t> bytes(12, 0xEE);
  pack_block_row(codes, block_float_of(Dtype::mx6), &exponent, shifts.data(), bytes.data());
  // 5-bit codes: 00001 11111 01111 10001 00000 00010 00100 01000, first in the low bits
  CHECK(bytes == std::vector<uint8_t>{130, 0x09, 0xE1, 0xBF, 0x08, 0x04, 0x41, 0, 0, 0, 0, 0});
}

TEST_CASE("block floats: rows of any length round-trip") {
  std::mt19937 random(3);
  for (const BlockFloatFormat& format :
       {block_float_of(Dtype::mx6), block_float_of(Dtype::mx6, 32), block_float_of(Dtype::mx9),
        block_float_of(Dtype::mx9, 6), block_float_of(Dtype::bfp16)}) {
    for (size_t columns = 1; columns <= 70; ++columns) {
      const size_t blocks = (columns + format.block - 1) / format.block, pairs = (columns + 1) / 2;
      std::vector<uint8_t> exponents(blocks), shifts(format.pair_shift ? pairs : 0);
      std::vector<int8_t> codes(columns);
      for (uint8_t& e : exponents) e = static_cast<uint8_t>(random());
      for (uint8_t& s : shifts) s = random() & 1;
      for (int8_t& c : codes)
        c = static_cast<int8_t>(static_cast<int>(random() % (2 * static_cast<unsigned>(format.code_limit()) + 1)) -
                                format.code_limit());
      std::vector<uint8_t> bytes(static_cast<size_t>(block_row_bytes(columns, format)));
      pack_block_row(codes, format, exponents.data(), shifts.data(), bytes.data());
      std::vector<uint8_t> back_exponents(blocks), back_shifts(shifts.size());
      std::vector<int8_t> back(columns);
      unpack_block_row(bytes.data(), columns, format, back_exponents.data(), back_shifts.data(), back.data());
      REQUIRE(back == codes);
      REQUIRE(back_exponents == exponents);
      REQUIRE(back_shifts == shifts);
    }
  }
}
