// Transposition against its definition, over sizes around the 8 x 8 tiles and 64 x 64 blocks.
#include <doctest/doctest.h>

#include <random>
#include <vector>

#include "packing/packing.h"

using wasmquant::packing::transpose_bytes;
using wasmquant::packing::transpose_floats;

TEST_CASE("transpose: out[c, r] = in[r, c], nothing beyond the end") {
  std::mt19937 random(1);
  for (const size_t rows : {0u, 1u, 7u, 8u, 9u, 15u, 16u, 63u, 64u, 65u, 130u})
    for (const size_t columns : {0u, 1u, 3u, 8u, 17u, 24u, 63u, 64u, 72u, 129u}) {
      CAPTURE(rows);
      CAPTURE(columns);
      std::vector<uint8_t> in(rows * columns), out(rows * columns + 1, 0xA5);
      for (uint8_t& byte : in) byte = static_cast<uint8_t>(random());
      transpose_bytes(in.data(), rows, columns, out.data());
      size_t wrong = 0;
      for (size_t r = 0; r < rows; ++r)
        for (size_t c = 0; c < columns; ++c) wrong += out[c * rows + r] != in[r * columns + c];
      CHECK(wrong == 0);
      CHECK(out.back() == 0xA5);
      std::vector<float> floats(in.begin(), in.end()), transposed(rows * columns + 1, -1);
      transpose_floats(floats.data(), rows, columns, transposed.data());
      for (size_t r = 0; r < rows; ++r)
        for (size_t c = 0; c < columns; ++c) wrong += transposed[c * rows + r] != floats[r * columns + c];
      CHECK(wrong == 0);
      CHECK(transposed.back() == -1);
    }
}
