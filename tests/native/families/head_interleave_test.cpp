#include "families/head_interleave.h"

#include <doctest/doctest.h>

#include <vector>

using wasmquant::families::HeadInterleave;

TEST_CASE("head interleave: row i and row i + d/2 of a head become neighbours") {
  const uint64_t expected[] = {0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11};  // two heads of six rows
  for (uint64_t row = 0; row < 12; ++row) CHECK(HeadInterleave(6).halves_row(row) == expected[row]);
}

TEST_CASE("head interleave: both ways undo each other, in every head, for rows of any width") {
  for (const uint64_t head_rows : {2u, 4u, 6u, 10u, 64u, 128u})
    for (const uint64_t heads : {1u, 2u, 5u})
      for (const uint64_t columns : {1u, 3u, 8u}) {
        CAPTURE(head_rows);
        CAPTURE(columns);
        const HeadInterleave rows(head_rows);
        std::vector<float> halves(heads * head_rows * columns), pairs(halves.size()), back(halves.size());
        for (size_t i = 0; i < halves.size(); ++i) halves[i] = static_cast<float>(i);
        rows.to_pairs(halves, columns, pairs.data());
        rows.to_halves(pairs, columns, back.data());
        CHECK(back == halves);
        // The definition, with heads, pairs and halves as axes.
        size_t wrong = 0;
        for (uint64_t head = 0; head < heads; ++head)
          for (uint64_t i = 0; i < head_rows / 2; ++i)
            for (uint64_t j = 0; j < 2; ++j) {
              const uint64_t pair = head * head_rows + 2 * i + j, half = head * head_rows + j * head_rows / 2 + i;
              wrong += rows.halves_row(pair) != half;
              for (uint64_t column = 0; column < columns; ++column)
                wrong += pairs[pair * columns + column] != halves[half * columns + column];
            }
        CHECK(wrong == 0);
      }
}
