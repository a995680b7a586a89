#include "numeric/strided_view.h"

#include <doctest/doctest.h>

#include <vector>

using namespace wasmquant;

TEST_CASE("strided view: a transpose and every second column") {
  const std::vector<int> matrix = {0, 1, 2, 3, 4, 5};  // [2, 3]
  std::vector<int> out;
  StridedView{0, {1, 3, 2}, {0, 1, 3}}.copy(matrix, out);
  CHECK(out == std::vector<int>{0, 3, 1, 4, 2, 5});
  out.clear();
  StridedView{1, {1, 1, 2}, {0, 0, 3}}.copy(matrix, out);
  CHECK(out == std::vector<int>{1, 4});
}

TEST_CASE("strided view: one that reaches beyond the array does not fit") {
  CHECK(StridedView{0, {1, 3, 2}, {0, 1, 3}}.fits(6));
  CHECK_FALSE(StridedView{1, {1, 3, 2}, {0, 1, 3}}.fits(6));
  CHECK_FALSE(StridedView{0, {1, 0, 2}, {0, 1, 3}}.fits(6));
  CHECK_FALSE(StridedView{~uint64_t{0}, {1, 1, 2}, {0, 0, 1}}.fits(6));
  CHECK_FALSE(StridedView{0, {1, 3, 2}, {0, ~uint64_t{0} / 2 + 1, 3}}.fits(6));
  CHECK_FALSE(StridedView{0, {uint64_t{1} << 33, uint64_t{1} << 33, 1}, {0, 0, 0}}.fits(6));
}
