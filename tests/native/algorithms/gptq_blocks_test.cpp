// GPTQ in GGUF's blocks: what it must not exceed, and what must not matter.
#include "algorithms/rounding/gptq_blocks.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "algorithms/hessian.h"
#include "algorithms/product_error.h"
#include "algorithms/rounding/block_refinement.h"
#include "kernels/ggml/ggml_blocks.h"
#include "kernels/ggml/ggml_codebook.h"
#include "kernels/ggml/ggml_grid.h"
#include "random_values.h"

using namespace wasmquant;

namespace {

ErrorFeedback feedback_of_inputs(std::span<const float> x, size_t columns, ColumnOrder order) {
  HessianAccumulator accumulator(columns);
  REQUIRE(accumulator.add(x, 1));
  Result<std::vector<float>> hessian = std::move(accumulator).finish();
  REQUIRE(hessian);
  Result<ErrorFeedback> found = error_feedback_of(std::move(*hessian), columns, 0.01, order);
  REQUIRE(found);
  return std::move(*found);
}

struct BlockLayer {
  size_t rows = 40, columns = 512;
  std::vector<float> weight, x;

  explicit BlockLayer(uint32_t seed) {
    RandomValues random(seed);
    weight = normal_values(rows * columns, seed, 0, 0.05f);
    x = random.inputs(600, columns);
  }
  ErrorFeedback feedback(GgmlType type) const { return feedback_of_inputs(x, columns, block_order(type, true)); }
};

enum class Codebooks : bool { without, with };

template <class Test>
void for_each_block_type(Codebooks codebooks, Test test) {
  for (const GgmlTypeInfo& info : kGgmlTypes) {
    if (info.block == 1 || !info.can_quantize()) continue;
    if (codebooks == Codebooks::without && kernels::has_codebook(info.type)) continue;
    CAPTURE(info.name);
    test(info);
  }
}

}  // namespace

TEST_CASE("every block type loses less by error feedback, and its blocks hold the values") {
  const BlockLayer layer(5);
  std::vector<float> importance(layer.columns);
  for (size_t at = 0; at < layer.x.size(); ++at) importance[at % layer.columns] += layer.x[at] * layer.x[at];
  for_each_block_type(Codebooks::with, [&](const GgmlTypeInfo& info) {
    std::vector<uint8_t> nearest(info.bytes_of(layer.weight.size())), blocks(nearest.size());
    kernels::quantize_blocks(info.type, layer.weight.data(), layer.rows, layer.columns, importance.data(),
                             nearest.data());
    std::vector<float> plain(layer.weight.size()), stored(plain.size()), values = layer.weight;
    kernels::dequantize_blocks(info.type, nearest.data(), plain.size(), plain.data());
    REQUIRE(gptq_blocks(layer.feedback(info.type), info.type, values, blocks));
    kernels::dequantize_blocks(info.type, blocks.data(), stored.size(), stored.data());
    CHECK(stored == values);
    const double before = test_algorithms::output_error(layer.x, layer.weight, plain, layer.columns);
    const double after = test_algorithms::output_error(layer.x, layer.weight, values, layer.columns);
    CAPTURE(after / before);
    // Entries of eight elements leave the feedback less to choose, three levels in 2,048 entries least: 0.83 to 0.92 by sample.
    const double most = info.type == GgmlType::iq1_s ? 0.96 : kernels::has_codebook(info.type) ? 0.85 : 0.6;
    CHECK(after < most * before);
  });
}

TEST_CASE("refinement lowers the error of blocks, row by row, and they hold the values") {
  const BlockLayer layer(9);
  HessianAccumulator accumulator(layer.columns);
  REQUIRE(accumulator.add(layer.x, 1));
  const std::vector<float> hessian = *std::move(accumulator).finish();
  const auto errors = [&](const std::vector<float>& values) {
    std::vector<double> out(layer.rows);
    for (size_t row = 0; row < layer.rows; ++row)
      for (size_t i = 0; i < layer.columns; ++i) {
        double sum = 0;
        for (size_t j = 0; j < layer.columns; ++j) {
          const size_t at = row * layer.columns + j;
          sum += double{hessian[i * layer.columns + j]} * (values[at] - layer.weight[at]);
        }
        out[row] += sum * (values[row * layer.columns + i] - layer.weight[row * layer.columns + i]);
      }
    return out;
  };
  for_each_block_type(Codebooks::without, [&](const GgmlTypeInfo& info) {
    std::vector<uint8_t> blocks(info.bytes_of(layer.weight.size()));
    std::vector<float> values = layer.weight, stored(values.size());
    REQUIRE(gptq_blocks(layer.feedback(info.type), info.type, values, blocks));
    const std::vector<double> before = errors(values);
    std::vector<float> parts = values;
    std::vector<uint8_t> tiled = blocks;
    refine_blocks(hessian, info.type, layer.weight, values, blocks);
    kernels::dequantize_blocks(info.type, blocks.data(), stored.size(), stored.data());
    CHECK(stored == values);
    const std::vector<double> after = errors(values);
    double sum_before = 0, sum_after = 0;
    for (size_t row = 0; row < layer.rows; ++row) {
      CHECK(after[row] <= before[row] * (1 + 1e-5));
      sum_before += before[row];
      sum_after += after[row];
    }
    CHECK(sum_after < 0.99 * sum_before);
    for (const auto& [row, count] : {std::pair<size_t, size_t>{0, 8}, {8, 32}}) {
      const size_t first = row * layer.columns, length = count * layer.columns;
      refine_blocks(hessian, info.type, std::span(layer.weight).subspan(first, length),
                    std::span(parts).subspan(first, length),
                    std::span(tiled).subspan(info.bytes_of(first), info.bytes_of(length)));
    }
    CHECK(tiled == blocks);
    CHECK(parts == values);
  });
}

TEST_CASE("bytes are the same on every platform") {
  BlockLayer layer(10);
  layer.weight = RandomValues(11).vector(layer.weight.size());
  HessianAccumulator accumulator(layer.columns);
  REQUIRE(accumulator.add(layer.x, 1));
  const std::vector<float> hessian = *std::move(accumulator).finish();
  uint32_t hash = 2166136261u;
  for_each_block_type(Codebooks::without, [&](const GgmlTypeInfo& info) {
    std::vector<uint8_t> blocks(info.bytes_of(layer.weight.size()));
    std::vector<float> values = layer.weight;
    REQUIRE(gptq_blocks(layer.feedback(info.type), info.type, values, blocks));
    refine_blocks(hessian, info.type, layer.weight, values, blocks);
    for (const uint8_t byte : blocks) hash = (hash ^ byte) * 16777619u;
  });
  CHECK(hash == 2533328106u);
}

TEST_CASE("rows do not depend on the tile that they are in") {
  const BlockLayer layer(6);
  for_each_block_type(Codebooks::without, [&](const GgmlTypeInfo& info) {
    const ErrorFeedback feedback = layer.feedback(info.type);
    std::vector<uint8_t> whole(info.bytes_of(layer.weight.size())), tiled(whole.size());
    std::vector<float> values = layer.weight, parts = layer.weight;
    REQUIRE(gptq_blocks(feedback, info.type, values, whole));
    for (size_t row = 0, count = 8; row < layer.rows; row += count, count = 16) {
      const size_t first = row * layer.columns, length = count * layer.columns;
      REQUIRE(gptq_blocks(feedback, info.type, std::span(parts).subspan(first, length),
                          std::span(tiled).subspan(info.bytes_of(first), info.bytes_of(length))));
    }
    CHECK(whole == tiled);
    CHECK(values == parts);
  });
}

TEST_CASE("the order keeps blocks and the runs of a scale together") {
  const BlockLayer layer(7);
  for_each_block_type(Codebooks::without, [&](const GgmlTypeInfo& info) {
    const std::vector<uint32_t> order = layer.feedback(info.type).order;
    bool is_sorted = true;
    for (size_t i = 1; i < order.size(); ++i) {
      if (i % info.block != 0) CHECK(order[i] / info.block == order[i - 1] / info.block);
      const size_t run = kernels::run_of(info.type);
      if (i % run != 0) CHECK(order[i] / run == order[i - 1] / run);
      is_sorted &= order[i] > order[i - 1];
    }
    CHECK_FALSE(is_sorted);
  });
}

TEST_CASE("dead columns, zero rows, and arguments that do not fit") {
  BlockLayer layer(8);
  for (size_t at = 3; at < layer.x.size(); at += layer.columns) layer.x[at] = 0;
  std::fill_n(layer.weight.begin(), layer.columns, 0.0f);
  for_each_block_type(Codebooks::without, [&](const GgmlTypeInfo& info) {
    const ErrorFeedback feedback = layer.feedback(info.type);
    std::vector<uint8_t> blocks(info.bytes_of(layer.weight.size()));
    std::vector<float> values = layer.weight;
    REQUIRE(gptq_blocks(feedback, info.type, values, blocks));
    for (size_t j = 0; j < layer.columns; ++j) CHECK(values[j] == 0);
    CHECK_FALSE(gptq_blocks(feedback, info.type, values, std::span(blocks).subspan(1)));
    values[7] = std::numeric_limits<float>::quiet_NaN();
    const Status bad = gptq_blocks(feedback, info.type, values, blocks);
    REQUIRE_FALSE(bad);
    CHECK(bad.error().code == ErrorCode::value_not_finite);
  });
  const ErrorFeedback narrow = feedback_of_inputs(std::span(layer.x).first(4000), 40, false);
  std::vector<float> values(80);
  std::vector<uint8_t> blocks(80);
  CHECK(gptq_blocks(narrow, GgmlType::q4_0, values, blocks).error().code == ErrorCode::group_size_invalid);
}
