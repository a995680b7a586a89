#include "kernels/matmul.h"

#include "kernels/variants.h"

namespace wasmquant::kernels {
namespace {

std::vector<float> numbers(size_t count, uint32_t salt) {
  std::vector<float> x = test_values(count, Content::finite, salt);
  for (float& v : x) v = v * 0x1p-6f;  // sums of any depth stay finite
  return x;
}

struct Shape {
  size_t rows, columns, depth;
};

/// Around tiles (4 rows, 8 or 16 columns), blocks (32 rows, 1024 columns) and the depth that is summed at a time.
std::vector<Shape> shapes() {
  std::vector<Shape> all;
  for (const size_t rows : {0, 1, 3, 4, 5, 33})
    for (const size_t columns : {0, 1, 7, 8, 9, 16, 17, 40})
      for (const size_t depth : {0, 1, 2, 3, 128, 129, 257}) all.push_back({rows, columns, depth});
  for (const size_t columns : {1023, 1024, 1025, 1041}) all.push_back({37, columns, 131});
  all.push_back({70, 70, 300});
  return all;
}

TEST_CASE("products equal their oracle to the bit: any shape, layout and update") {
  for_each_arch([] {
    for (const auto& [rows, columns, depth] : shapes()) {
      INFO(rows << " x " << columns << ", depth " << depth);
      const size_t a_step = std::max(rows, depth) + 3, b_step = std::max(columns, depth) + 1, stride = columns + 2;
      const std::vector<float> a = numbers(a_step * (std::max(rows, depth) + 1), 1);
      const std::vector<float> b = numbers(b_step * (std::max(columns, depth) + 1), 2);
      const std::vector<float> before = numbers(rows * stride, 3);
      std::vector<float> workspace(matmul_workspace(rows, columns, depth) + 1, -77.0f);
      for (const bool transposed : {false, true})
        for (const Update update : {Update::set, Update::add, Update::subtract})
          for (const Region region : {Region::all, Region::upper}) {
            const Factor left = transposed ? Factor{a.data(), 1, a_step} : Factor{a.data(), a_step, 1};
            const Factor right = transposed ? Factor{b.data(), 1, b_step} : Factor{b.data(), b_step, 1};
            check_same<float>(
                rows * stride, 1,
                [&](float* c) {
                  std::copy(before.begin(), before.end(), c);
                  matmul(left, right, depth, rows, columns, update, region, c, stride, workspace.data());
                },
                [&](float* c) {
                  std::copy(before.begin(), before.end(), c);
                  reference::matmul(left, right, depth, rows, columns, update, region, c, stride);
                });
            REQUIRE(workspace.back() == -77.0f);
          }
    }
  });
}

TEST_CASE("a row times a packed factor has the bits of a product") {
  for_each_arch([] {
    for (const size_t columns : {1, 31, 32, 33, 100})
      for (const size_t depth : {0, 1, 127, 128, 129, 300})
        for (const bool transposed : {false, true}) {
          INFO(columns << " columns, depth " << depth);
          const std::vector<float> a = numbers(depth + 1, 1), b = numbers(columns * depth + 1, 2);
          const Factor factor = transposed ? Factor{b.data(), 1, columns} : Factor{b.data(), depth, 1};
          std::vector<float> packed(packed_size(columns, depth) + 1, -77.0f);
          pack_columns(factor, depth, columns, packed.data());
          REQUIRE(packed.back() == -77.0f);
          check_same<float>(
              columns, 1, [&](float* c) { multiply_row(a.data(), packed.data(), depth, columns, c); },
              [&](float* c) {
                reference::matmul({a.data(), depth, 1}, factor, depth, 1, columns, Update::set, Region::all, c,
                                  columns);
              });
        }
  });
}

TEST_CASE("rows may be computed in any split") {
  constexpr size_t kRows = 45, kColumns = 50, kDepth = 200;
  const std::vector<float> a = numbers(kRows * kDepth, 4), b = numbers(kColumns * kDepth, 5);
  std::vector<float> whole(kRows * kColumns), parts(kRows * kColumns);
  std::vector<float> workspace(matmul_workspace(kRows, kColumns, kDepth));
  const auto rows_from = [&](size_t begin, size_t end, float* c) {
    matmul({a.data() + begin * kDepth, kDepth, 1}, {b.data(), kDepth, 1}, kDepth, end - begin, kColumns, Update::set,
           Region::all, c + begin * kColumns, kColumns, workspace.data());
  };
  for_each_arch([&] {
    rows_from(0, kRows, whole.data());
    for (const size_t step : {1, 2, 7, 44}) {
      for (size_t at = 0; at < kRows; at += step) rows_from(at, std::min(at + step, kRows), parts.data());
      REQUIRE(parts == whole);
    }
  });
}

TEST_CASE("products are close to those in float64") {
  constexpr size_t kRows = 9, kColumns = 20, kDepth = 2000;
  const std::vector<float> a = numbers(kRows * kDepth, 6), b = numbers(kColumns * kDepth, 7);
  std::vector<float> c(kRows * kColumns), workspace(matmul_workspace(kRows, kColumns, kDepth));
  matmul({a.data(), kDepth, 1}, {b.data(), kDepth, 1}, kDepth, kRows, kColumns, Update::set, Region::all, c.data(),
         kColumns, workspace.data());
  for (size_t i = 0; i < kRows; ++i)
    for (size_t j = 0; j < kColumns; ++j) {
      double sum = 0, magnitude = 0;
      for (size_t p = 0; p < kDepth; ++p) {
        const double term = double{a[i * kDepth + p]} * b[j * kDepth + p];
        sum += term;
        magnitude += std::fabs(term);
      }
      CHECK(std::fabs(c[i * kColumns + j] - sum) <= 2e-6 * magnitude);
    }
}

}  // namespace
}  // namespace wasmquant::kernels
