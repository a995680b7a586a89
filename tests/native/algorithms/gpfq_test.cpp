// GPFQ by its properties.
#include "algorithms/rounding/gpfq.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "algorithms/product_error.h"
#include "observers/registry.h"
#include "quantize/quantize.h"
#include "random_values.h"
#include "tools/brevitas/brevitas_grid.h"

using namespace wasmquant;
using test_algorithms::output_error;

namespace {

QuantizationSpec int4_rows() {
  QuantizationSpec spec;
  spec.dtype = Dtype::int4;
  spec.qscheme = QScheme::per_channel;
  spec.observer = ObserverId::PerChannelMinMaxObserver;
  spec.grid = brevitas_grid(true, false, BrevitasVersion::v0_12_1);
  return spec;
}

struct GpfqQuantized {
  std::vector<float> values;
  std::vector<uint8_t> codes;
};

std::vector<QParams> scales_of(const std::vector<float>& weight, size_t rows) {
  auto found = observe_tensor(int4_rows(), weight, {rows, weight.size() / rows});
  REQUIRE(found);
  return found->qparams;
}

GpfqQuantized run(const GpfqInputs& inputs, const std::vector<float>& weight, size_t rows,
                  const GpfqOptions& options = {}, const std::vector<QParams>* scales = nullptr) {
  GpfqQuantized q{weight, std::vector<uint8_t>(weight.size())};
  REQUIRE(gpfq(inputs, int4_rows(), scales ? *scales : scales_of(weight, rows), options, rows, q.values, q.codes));
  return q;
}

GpfqInputs inputs_of(const std::vector<float>& x, size_t columns) {
  GpfqInputs inputs(columns);
  REQUIRE(inputs.add(x, x));
  inputs.finish();
  return inputs;
}

}  // namespace

TEST_CASE("GPFQ with inputs that do not overlap rounds to nearest") {
  RandomValues random(1);
  const size_t columns = 16, rows = 70;
  std::vector<float> identity(columns * columns);
  for (size_t i = 0; i < columns; ++i) identity[i * columns + i] = 2;
  const std::vector<float> weight = random.vector(rows * columns);
  const std::vector<QParams> scales = scales_of(weight, rows);
  const GpfqQuantized q = run(inputs_of(identity, columns), weight, rows);
  std::vector<float> nearest(weight.size());
  const auto g = granularity_of({rows, columns}, int4_rows());
  REQUIRE(g);
  fake_quantize(*g, int4_rows(), scales, weight, 0, nearest.data());
  CHECK(q.values == nearest);
}

TEST_CASE("GPFQ changes the output less than rounding does, and does not depend on the split of tokens and rows") {
  RandomValues random(2);
  const size_t columns = 24, rows = 80, tokens = 300;
  const std::vector<float> x = random.inputs(tokens, columns), weight = random.vector(rows * columns);
  const GpfqInputs inputs = inputs_of(x, columns);
  std::vector<float> nearest(weight.size());
  const auto g = granularity_of({rows, columns}, int4_rows());
  REQUIRE(g);
  fake_quantize(*g, int4_rows(), scales_of(weight, rows), weight, 0, nearest.data());
  for (const bool act_order : {false, true}) {
    GpfqOptions options;
    options.act_order = act_order;
    const GpfqQuantized q = run(inputs, weight, rows, options);
    CHECK(output_error(x, weight, q.values, columns) < 0.5 * output_error(x, weight, nearest, columns));
    GpfqInputs split(columns);
    for (size_t t = 0; t < tokens; t += 50) {
      const std::span<const float> part(x.data() + t * columns, 50 * columns);
      REQUIRE(split.add(part, part));
    }
    split.finish();
    CHECK(run(split, weight, rows, options).values == q.values);
    const std::vector<float> tile(weight.begin() + 66 * columns, weight.end());
    const std::vector<float> same(q.values.begin() + 66 * columns, q.values.end());
    CHECK(run(inputs, tile, rows - 66, options).values == same);
  }
}

TEST_CASE("GPFA2Q keeps the sum of codes within the accumulator") {
  RandomValues random(3);
  const size_t columns = 32, rows = 4;
  const std::vector<float> weight = random.vector(rows * columns);
  GpfqOptions options;
  options.accumulator_bits = 12;  // T = 2047 / 128 = 15.99
  const GpfqQuantized q = run(inputs_of(random.inputs(100, columns), columns), weight, rows, options);
  for (size_t row = 0; row < rows; ++row) {
    int sum = 0;
    for (size_t j = 0; j < columns; ++j) sum += std::abs(static_cast<int8_t>(q.codes[row * columns + j]));
    CHECK(sum <= 16);  // rounding may go half a code beyond
  }
}

TEST_CASE("GPFQ: columns without input become zero, and impossible input is an error") {
  const std::vector<float> x = {1, 0, 2, 0}, weight = {0.5f, 0.75f};
  const GpfqQuantized q = run(inputs_of(x, 2), weight, 1);
  CHECK(q.values[1] == 0.0f);
  GpfqInputs inputs(2);
  const float bad[] = {1, std::numeric_limits<float>::quiet_NaN()}, three[] = {1, 2, 3};
  const auto code_of = [](const Status& status) { return status ? ErrorCode::json_invalid : status.error().code; };
  CHECK(code_of(inputs.add(bad, bad)) == ErrorCode::value_not_finite);
  CHECK(code_of(inputs.add(three, three)) == ErrorCode::shape_mismatch);
  std::vector<float> values = weight;
  std::vector<uint8_t> codes(2);
  const QParams scales[] = {{1, 0}, {1, 0}};
  CHECK(code_of(gpfq(inputs, int4_rows(), {scales, 2}, {}, 1, values, codes)) == ErrorCode::shape_mismatch);
  CHECK(code_of(gpfq(inputs, int4_rows(), {scales, 1}, {}, 2, values, codes)) == ErrorCode::shape_mismatch);
  values[1] = INFINITY;
  CHECK(code_of(gpfq(inputs, int4_rows(), {scales, 1}, {}, 1, values, codes)) == ErrorCode::value_not_finite);
}
