// GPTQ by its properties: what it must equal, what it must not exceed, what must not matter.
#include "algorithms/rounding/gptq.h"

#include <doctest/doctest.h>

#include <cmath>
#include <utility>
#include <vector>

#include "algorithms/hessian.h"
#include "algorithms/product_error.h"
#include "observers/observer.h"
#include "observers/registry.h"
#include "quantize/quantize.h"
#include "random_values.h"

using namespace wasmquant;
using test_algorithms::output_error;

namespace {

QuantizationSpec gptq_spec_of(Dtype dtype, bool symmetric, QScheme qscheme, int64_t group_size) {
  QuantizationSpec spec;
  spec.dtype = dtype;
  spec.symmetric = symmetric;
  spec.qscheme = qscheme;
  spec.ch_axis = qscheme == QScheme::per_group ? 1 : 0;
  spec.group_size = group_size;
  spec.observer = min_max_observer_for(qscheme);
  return spec;
}

QuantizationSpec int4_groups(int64_t group_size) {
  return gptq_spec_of(Dtype::int4, true, QScheme::per_group, group_size);
}

struct GptqQuantized {
  std::vector<float> values;
  std::vector<uint8_t> codes;
  std::vector<QParams> qparams;
};

GptqQuantized round_to_nearest(const std::vector<float>& weight, size_t rows, const QuantizationSpec& spec) {
  const Result<Granularity> g = granularity_of({rows, weight.size() / rows}, spec);
  REQUIRE(g);
  RangeObserver observer(*g, spec);
  observer.update(weight, 0);
  GptqQuantized q{std::vector<float>(weight.size()),
                  std::vector<uint8_t>(weight.size() * info_of(spec.dtype).code_bytes()), observer.finish()};
  quantize(*g, spec, q.qparams, kernels::Path::fake, weight, 0, q.codes.data());
  dequantize(*g, spec, q.qparams, q.codes.data(), weight.size(), 0, q.values.data());
  return q;
}

Result<std::vector<QParams>> try_gptq(const ErrorFeedback& feedback, const QuantizationSpec& spec,
                                      const GptqOptions& options, size_t rows, GptqQuantized& q) {
  q.codes.assign(q.values.size() * info_of(spec.dtype).code_bytes(), 0xAA);
  return gptq(feedback, spec, options, rows, q.values, q.codes);
}

GptqQuantized run_gptq(const ErrorFeedback& feedback, const QuantizationSpec& spec, const GptqOptions& options,
                       const std::vector<float>& weight, size_t rows) {
  GptqQuantized q{weight, {}, {}};
  Result<std::vector<QParams>> qparams = try_gptq(feedback, spec, options, rows, q);
  REQUIRE_MESSAGE(bool(qparams), qparams.error().message);
  q.qparams = std::move(*qparams);
  return q;
}

ErrorFeedback feedback_of(const std::vector<float>& x, size_t columns, bool desc_act) {
  HessianAccumulator accumulator(columns);
  REQUIRE(accumulator.add(x, 1));
  Result<std::vector<float>> h = std::move(accumulator).finish();
  REQUIRE(h);
  Result<ErrorFeedback> feedback = error_feedback_of(std::move(*h), columns, 0.01, desc_act);
  REQUIRE(feedback);
  return std::move(*feedback);
}

ErrorFeedback identity_feedback(size_t columns, bool desc_act) {
  std::vector<float> h(columns * columns);
  for (size_t i = 0; i < columns; ++i) h[i * columns + i] = 1;
  Result<ErrorFeedback> feedback = error_feedback_of(std::move(h), columns, 0.01, desc_act);
  REQUIRE(feedback);
  return std::move(*feedback);
}

// Every spec whose scales GPTQ can follow.
std::vector<QuantizationSpec> specs() {
  QuantizationSpec float_zero_point = gptq_spec_of(Dtype::uint4, false, QScheme::per_group, 16);
  float_zero_point.zero_point_type = ZeroPointType::float32;
  return {int4_groups(16),
          int4_groups(-1),
          gptq_spec_of(Dtype::uint4, false, QScheme::per_group, 24),
          float_zero_point,
          gptq_spec_of(Dtype::int8, true, QScheme::per_channel, 0),
          gptq_spec_of(Dtype::uint8, false, QScheme::per_tensor, 0),
          gptq_spec_of(Dtype::int16, true, QScheme::per_channel, 0),
          gptq_spec_of(Dtype::int3, true, QScheme::per_group, 8),
          gptq_spec_of(Dtype::fp8_e4m3, true, QScheme::per_channel, 0)};
}

}  // namespace

TEST_CASE("with independent columns GPTQ is round to nearest, in any order and blocks") {
  const size_t rows = 70, columns = 48;
  const std::vector<float> weight = RandomValues(1).vector(rows * columns);
  for (const QuantizationSpec& spec : specs()) {
    const GptqQuantized expected = round_to_nearest(weight, rows, spec);
    // A fractional zero point's real path and this one are the same codes, too.
    for (const uint32_t block_size : {1u, 5u, 128u})
      for (const bool static_groups : {true, false}) {
        GptqOptions options;
        options.block_size = block_size;
        options.static_groups = static_groups;
        const GptqQuantized q = run_gptq(identity_feedback(columns, true), spec, options, weight, rows);
        CHECK(q.values == expected.values);
        CHECK(q.codes == expected.codes);
        REQUIRE(q.qparams.size() == expected.qparams.size());
        for (size_t i = 0; i < q.qparams.size(); ++i) {
          REQUIRE(q.qparams[i].scale == expected.qparams[i].scale);
          REQUIRE(q.qparams[i].zero_point == expected.qparams[i].zero_point);
        }
      }
  }
}

TEST_CASE("on correlated inputs GPTQ loses less than round to nearest, and its values match its codes") {
  const size_t rows = 40, columns = 96, tokens = 300;
  for (uint32_t seed = 1; seed <= 3; ++seed) {
    RandomValues random(seed);
    const std::vector<float> x = random.inputs(tokens, columns), weight = random.vector(rows * columns);
    for (const QuantizationSpec& spec : specs())
      for (const bool desc_act : {false, true}) {
        const GptqQuantized q = run_gptq(feedback_of(x, columns, desc_act), spec, {}, weight, rows);
        CHECK(output_error(x, weight, q.values, columns) <
              0.9 * output_error(x, weight, round_to_nearest(weight, rows, spec).values, columns));
        const Result<Granularity> g = granularity_of({rows, columns}, spec);
        std::vector<float> values(weight.size());
        dequantize(*g, spec, q.qparams, q.codes.data(), weight.size(), 0, values.data());
        CHECK(values == q.values);
      }
  }
}

TEST_CASE("scales of static groups are those of the original weight, in any order") {
  const size_t rows = 9, columns = 64;
  RandomValues random(4);
  const std::vector<float> x = random.inputs(200, columns), weight = random.vector(rows * columns);
  const GptqQuantized expected = round_to_nearest(weight, rows, int4_groups(16));
  const ErrorFeedback feedback = feedback_of(x, columns, true);
  CHECK(feedback.order != feedback_of(x, columns, false).order);
  const GptqQuantized q = run_gptq(feedback, int4_groups(16), {}, weight, rows);
  for (size_t i = 0; i < q.qparams.size(); ++i) REQUIRE(q.qparams[i].scale == expected.qparams[i].scale);
  double worst = 0;  // values near their weights: every column went back to its place
  for (size_t i = 0; i < weight.size(); ++i) worst = std::max<double>(worst, std::fabs(weight[i] - q.values[i]));
  CHECK(worst < 1.5);
}

TEST_CASE("groups that are not static get their scales from the already compensated weight, for any block size") {
  const size_t rows = 5, columns = 96;
  RandomValues random(5);
  const std::vector<float> x = random.inputs(300, columns), weight = random.vector(rows * columns);
  const ErrorFeedback feedback = feedback_of(x, columns, false);
  GptqOptions options;
  options.static_groups = false;
  for (const int64_t group_size : {8, 24, 48}) {
    std::vector<GptqQuantized> results;
    for (const uint32_t block_size : {1u, 16u, 36u, 128u}) {
      options.block_size = block_size;
      results.push_back(run_gptq(feedback, int4_groups(group_size), options, weight, rows));
    }
    for (const GptqQuantized& q : results)
      for (size_t i = 0; i < q.qparams.size(); ++i)
        REQUIRE(q.qparams[i].scale == doctest::Approx(results[0].qparams[i].scale).epsilon(1e-4));
    // The first group has seen no error yet; the others have.
    const GptqQuantized fixed = round_to_nearest(weight, rows, int4_groups(group_size));
    CHECK(results[0].qparams[0].scale == fixed.qparams[0].scale);
    CHECK(results[0].qparams[1].scale != fixed.qparams[1].scale);
  }
}

TEST_CASE("groups by importance are GPTQ of the groups in that order, with the scales of each group of columns") {
  const size_t rows = 5, columns = 72, size = 16;  // the last group has eight
  RandomValues random(15);
  std::vector<float> x = random.inputs(300, columns);
  for (size_t t = 0; t < 300; ++t)
    for (size_t j = 32; j < 48; ++j) x[t * columns + j] *= 5;
  const std::vector<float> weight = random.vector(rows * columns);
  HessianAccumulator accumulator(columns);
  REQUIRE(accumulator.add(x, 1));
  std::vector<float> h = *std::move(accumulator).finish();
  const Result<ErrorFeedback> feedback = error_feedback_of(h, columns, 0.01, {true, size});
  REQUIRE(feedback);
  REQUIRE(feedback->order.front() / size == 2);
  REQUIRE(feedback->order.back() / size == 4);
  QuantizationSpec spec = int4_groups(size);
  spec.grid.pads_groups = true;
  GptqOptions options;
  options.act_group_aware = true;
  const GptqQuantized q = run_gptq(*feedback, spec, options, weight, rows);
  // The same columns, moved to where they come.
  std::vector<float> moved_x(x.size()), moved(weight.size());
  for (size_t i = 0; i < columns; ++i) {
    for (size_t t = 0; t < 300; ++t) moved_x[t * columns + i] = x[t * columns + feedback->order[i]];
    for (size_t row = 0; row < rows; ++row) moved[row * columns + i] = weight[row * columns + feedback->order[i]];
  }
  GptqOptions in_order;
  in_order.static_groups = false;
  const GptqQuantized expected = run_gptq(feedback_of(moved_x, columns, false), spec, in_order, moved, rows);
  for (size_t row = 0; row < rows; ++row)
    for (size_t i = 0; i < columns; ++i) {
      const size_t column = feedback->order[i];
      REQUIRE(q.values[row * columns + column] == doctest::Approx(expected.values[row * columns + i]).epsilon(1e-4));
      REQUIRE(q.qparams[row * 5 + column / size].scale ==
              doctest::Approx(expected.qparams[row * 5 + i / size].scale).epsilon(1e-4));
    }
}

TEST_CASE("act-order is GPTQ of the columns in that order: groups are runs of positions") {
  const size_t rows = 70, columns = 96;
  for (uint32_t seed = 1; seed <= 4; ++seed) {
    RandomValues random(seed);
    const std::vector<float> x = random.inputs(300, columns), weight = random.vector(rows * columns);
    const ErrorFeedback feedback = feedback_of(x, columns, true);
    std::vector<float> ordered_x(x.size()), ordered_weight(weight.size());
    for (size_t i = 0; i < x.size(); ++i) ordered_x[i] = x[i / columns * columns + feedback.order[i % columns]];
    for (size_t i = 0; i < weight.size(); ++i)
      ordered_weight[i] = weight[i / columns * columns + feedback.order[i % columns]];
    GptqOptions options;
    options.static_groups = false;
    options.block_size = seed % 2 == 0 ? 20 : 128;
    for (const QuantizationSpec& spec : {int4_groups(16), int4_groups(24), int4_groups(-1), int4_groups(32),
                                         gptq_spec_of(Dtype::uint3, false, QScheme::per_group, 8)}) {
      const GptqQuantized q = run_gptq(feedback, spec, options, weight, rows);
      const GptqQuantized ordered =
          run_gptq(feedback_of(ordered_x, columns, false), spec, options, ordered_weight, rows);
      const auto group_size = static_cast<uint64_t>(spec.group_size < 0 ? 96 : spec.group_size);
      const std::vector<uint32_t> index = group_index(feedback.order, group_size);
      REQUIRE(index.size() == (group_size == columns ? 0 : columns));
      const size_t groups = columns / group_size;
      REQUIRE(q.qparams.size() == rows * groups);
      for (size_t i = 0; i < weight.size(); ++i) {
        const size_t row = i / columns, at = row * columns + feedback.order[i % columns];
        REQUIRE(q.values[at] == ordered.values[i]);
        REQUIRE(q.codes[at] == ordered.codes[i]);
        const QParams& scale = q.qparams[row * groups + (index.empty() ? 0 : index[feedback.order[i % columns]])];
        const QParams& expected = ordered.qparams[row * groups + i % columns / group_size];
        REQUIRE(scale.scale == expected.scale);
        REQUIRE(scale.zero_point == expected.zero_point);
      }
    }
  }
}

TEST_CASE("columns in the layer's order need no index, nor does one group") {
  CHECK(group_index({0, 1, 2, 3, 4, 5}, 2).empty());
  CHECK(group_index({1, 0, 3, 2, 5, 4}, 2).empty());  // within their groups
  CHECK(group_index({5, 3, 1, 0, 2, 4}, 6).empty());
  CHECK(group_index({5, 3, 1, 0, 2, 4}, 2) == std::vector<uint32_t>{1, 1, 2, 0, 2, 0});
}

TEST_CASE("the block size changes almost nothing, row tiles nothing") {
  const size_t rows = 150, columns = 200;
  RandomValues random(6);
  const std::vector<float> x = random.inputs(400, columns), weight = random.vector(rows * columns);
  const ErrorFeedback feedback = feedback_of(x, columns, true);
  const GptqQuantized whole = run_gptq(feedback, int4_groups(20), {}, weight, rows);
  for (const uint32_t block_size : {1u, 7u, 64u, 100000u}) {
    GptqOptions options;
    options.block_size = block_size;
    const GptqQuantized q = run_gptq(feedback, int4_groups(20), options, weight, rows);
    size_t differing = 0;
    for (size_t i = 0; i < q.codes.size(); ++i) differing += q.codes[i] != whole.codes[i];
    CHECK(differing < q.codes.size() / 100);
    const double ratio = output_error(x, weight, q.values, columns) / output_error(x, weight, whole.values, columns);
    CHECK(ratio == doctest::Approx(1).epsilon(0.01));
  }
  GptqQuantized tiles;
  for (size_t row = 0; row < rows; row += 37) {
    const size_t count = std::min<size_t>(37, rows - row);
    const GptqQuantized tile =
        run_gptq(feedback, int4_groups(20), {},
                 {weight.begin() + row * columns, weight.begin() + (row + count) * columns}, count);
    tiles.values.insert(tiles.values.end(), tile.values.begin(), tile.values.end());
    tiles.codes.insert(tiles.codes.end(), tile.codes.begin(), tile.codes.end());
  }
  CHECK(tiles.values == whole.values);
  CHECK(tiles.codes == whole.codes);
}

TEST_CASE("dead columns become zero before any scale is chosen") {
  const size_t rows = 4, columns = 32;
  RandomValues random(7);
  std::vector<float> x = random.inputs(100, columns), weight = random.vector(rows * columns);
  for (size_t t = 0; t < 100; ++t) x[t * columns + 5] = x[t * columns + 30] = 0;
  for (size_t i = 0; i < rows; ++i) weight[i * columns + 5] = 100;
  for (const bool symmetric : {true, false}) {
    const QuantizationSpec spec =
        gptq_spec_of(symmetric ? Dtype::int4 : Dtype::uint4, symmetric, QScheme::per_group, 16);
    const GptqQuantized q = run_gptq(feedback_of(x, columns, true), spec, {}, weight, rows);
    for (size_t i = 0; i < rows; ++i) {
      CHECK(q.values[i * columns + 5] == 0);
      CHECK(q.values[i * columns + 30] == 0);
      CHECK(q.qparams[i * 2].scale < 0.2f);
    }
  }
}

TEST_CASE("one column, one row, no row, only dead columns") {
  const std::vector<float> x = {1, 2, -1};
  const GptqQuantized column = run_gptq(feedback_of(x, 1, true), int4_groups(1), {}, {0.5f, -3.0f}, 2);
  CHECK(column.values == round_to_nearest({0.5f, -3.0f}, 2, int4_groups(1)).values);
  const GptqQuantized row = run_gptq(feedback_of(x, 3, true), int4_groups(-1), {}, {0.5f, -3.0f, 1.0f}, 1);
  CHECK(row.qparams.size() == 1);
  const GptqQuantized none = run_gptq(feedback_of(x, 3, true), int4_groups(-1), {}, {}, 0);
  CHECK(none.values.empty());
  const GptqQuantized dead = run_gptq(feedback_of({0, 0}, 2, true), int4_groups(2), {}, {4, 5}, 1);
  CHECK(dead.values == std::vector<float>{0, 0});
  CHECK(dead.qparams[0].scale == kScaleEpsilon);
}

TEST_CASE("GPTQ refuses what it cannot do") {
  const size_t rows = 3, columns = 8;
  RandomValues random(8);
  const ErrorFeedback feedback = feedback_of(random.inputs(20, columns), columns, true);
  const std::vector<float> weight = random.vector(rows * columns);
  const auto code_of = [&](QuantizationSpec spec, GptqOptions options, std::vector<float> w) {
    GptqQuantized q{std::move(w), {}, {}};
    const Result<std::vector<QParams>> result = try_gptq(feedback, spec, options, rows, q);
    REQUIRE_FALSE(result);
    return result.error().code;
  };
  GptqOptions no_block;
  no_block.block_size = 0;
  std::vector<float> not_finite = weight;
  not_finite[9] = NAN;
  QuantizationSpec by_column = gptq_spec_of(Dtype::int4, true, QScheme::per_channel, 0);
  by_column.ch_axis = 1;
  QuantizationSpec down_columns = int4_groups(3);
  down_columns.ch_axis = 0;
  CHECK(code_of(int4_groups(4), no_block, weight) == ErrorCode::argument_invalid);
  CHECK(code_of(int4_groups(4), {}, not_finite) == ErrorCode::value_not_finite);
  CHECK(code_of(int4_groups(4), {}, {1, 2, 3}) == ErrorCode::shape_mismatch);
  CHECK(code_of(int4_groups(5), {}, weight) == ErrorCode::group_size_invalid);
  CHECK(code_of(by_column, {}, weight) == ErrorCode::spec_invalid);
  CHECK(code_of(down_columns, {}, weight) == ErrorCode::spec_invalid);
}
