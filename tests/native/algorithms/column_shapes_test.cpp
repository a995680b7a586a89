// Every column-wise algorithm on every granularity and on the shapes at which groups end early: odd columns, one row,
// one column, a group wider than the row, a short last group.
#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include "algorithms/column_run.h"
#include "algorithms/product_error.h"
#include "algorithms/rounding/column_groups.h"
#include "random_values.h"

using namespace wasmquant;
using test_algorithms::output_error;

namespace {

constexpr ColumnMethod kColumnRounding[] = {ColumnMethod::gptq, ColumnMethod::gptaq, ColumnMethod::qronos,
                                            ColumnMethod::gpfq};
constexpr ColumnMethod kColumnMethodsAll[] = {ColumnMethod::nearest,   ColumnMethod::gptq, ColumnMethod::gptaq,
                                              ColumnMethod::qronos,    ColumnMethod::gpfq, ColumnMethod::awq_clip,
                                              ColumnMethod::awq_scales};

struct ColumnDtype {
  Dtype dtype;
  bool symmetric;
  ScaleFormat scale_format = ScaleFormat::float32;
  ScaleSign scale_sign = ScaleSign::positive;
};
constexpr ColumnDtype kColumnDtypes[] = {{Dtype::int4, true},
                                         {Dtype::int3, true, ScaleFormat::float32, ScaleSign::signed_},
                                         {Dtype::uint4, false},
                                         {Dtype::int16, true},
                                         {Dtype::fp8_e4m3, true},
                                         {Dtype::fp4, true, ScaleFormat::e8m0},
                                         {Dtype::fp4, true, ScaleFormat::e4m3},
                                         {Dtype::bfloat16, true}};

QuantizationSpec column_spec(const ColumnDtype& dtype, QScheme qscheme, int64_t group_size) {
  QuantizationSpec spec;
  spec.dtype = dtype.dtype;
  spec.symmetric = dtype.symmetric;
  spec.scale_format = dtype.scale_format;
  spec.scale_sign = dtype.scale_sign;
  spec.qscheme = qscheme;
  spec.ch_axis = qscheme == QScheme::per_group ? 1 : 0;
  spec.group_size = group_size;
  spec.observer = min_max_observer_for(qscheme);
  spec.grid.pads_groups = true;
  return spec;
}

ColumnLayer column_layer_of(size_t rows, size_t columns, size_t tokens = 40) {
  RandomValues random(static_cast<uint32_t>(rows * 1000 + columns));
  ColumnLayer layer{rows, columns, random.vector(rows * columns), random.inputs(tokens, columns), {}};
  layer.changed = layer.x;
  for (float& value : layer.changed) value += 0.05f * random.next();
  return layer;
}

void check_column_shape(const ColumnLayer& layer, const ColumnDtype& dtype, QScheme qscheme, int64_t group_size) {
  const QuantizationSpec spec = column_spec(dtype, qscheme, group_size);
  const auto g = granularity_of({layer.rows, layer.columns}, spec);
  REQUIRE(g);
  for (const ColumnMethod method : kColumnMethodsAll)
    for (const bool static_groups : {true, false})
      for (const uint32_t block_size : {128u, 5u}) {
        CAPTURE(static_cast<int>(method));
        CAPTURE(layer.columns);
        CAPTURE(group_size);
        GptqOptions options;
        options.desc_act = static_groups;
        options.static_groups = static_groups;
        options.block_size = block_size;
        const Result<ColumnResult> found = run_columns(method, layer, spec, options);
        if (method == ColumnMethod::awq_clip && qscheme == QScheme::per_tensor) {
          CHECK(found.error().code == ErrorCode::spec_invalid);
          continue;
        }
        REQUIRE_MESSAGE(bool(found), found.error().message);
        for (const float value : found->values) REQUIRE(std::isfinite(value));
        if (found->codes.empty()) continue;
        CHECK(found->qparams.size() == g->scale_count());
        std::vector<float> values(found->values.size());
        dequantize(*g, spec, found->qparams, found->codes.data(), values.size(), 0, values.data());
        CHECK(values == found->values);
      }
}

// Weights and codes of one column more or less must not matter to the rest, so the groups are compared one by one.
std::vector<QParams> scales_of_columns(const ColumnLayer& layer, const QuantizationSpec& spec, ColumnRange range) {
  std::vector<float> part;
  for (size_t row = 0; row < layer.rows; ++row)
    for (size_t j = range.begin; j < range.end; ++j) part.push_back(layer.weight[row * layer.columns + j]);
  QuantizationSpec whole = spec;
  whole.group_size = -1;
  return min_max_scales(*granularity_of({layer.rows, range.count()}, whole), whole, part);
}

}  // namespace

TEST_CASE("column-wise algorithms stay inside their arrays, and their values match their codes") {
  constexpr struct { size_t rows, columns; } kShapes[] = {{3, 37}, {1, 37}, {66, 9}, {4, 1}, {1, 1}, {5, 48}};
  for (const auto& shape : kShapes) {
    const ColumnLayer layer = column_layer_of(shape.rows, shape.columns);
    for (const ColumnDtype& dtype : kColumnDtypes) {
      for (const int64_t group_size : {-1, 1, 5, 16, 36, 1000})
        if (dtype.dtype != Dtype::bfloat16) check_column_shape(layer, dtype, QScheme::per_group, group_size);
      if (dtype.scale_format != ScaleFormat::float32) continue;
      check_column_shape(layer, dtype, QScheme::per_channel, 0);
      check_column_shape(layer, dtype, QScheme::per_tensor, 0);
    }
  }
}

TEST_CASE("column-wise algorithms: scales that are fit to their codes, of any shape") {
  constexpr struct { size_t rows, columns; } kShapes[] = {{3, 37}, {1, 37}, {66, 9}, {4, 1}, {1, 1}, {5, 48}};
  for (const auto& shape : kShapes) {
    const ColumnLayer layer = column_layer_of(shape.rows, shape.columns);
    for (const ColumnDtype& dtype : {kColumnDtypes[0], kColumnDtypes[1], kColumnDtypes[2]})
      for (const int64_t group_size : {-1, 1, 5, 16, 1000}) {
        QuantizationSpec spec = column_spec(dtype, QScheme::per_group, group_size);
        spec.scale_refit = true;
        for (const bool static_groups : {true, false}) {
          GptqOptions options;
          options.desc_act = options.static_groups = static_groups;
          const auto found = run_columns(ColumnMethod::gptq, layer, spec, options);
          REQUIRE(found);
          const auto g = granularity_of({layer.rows, layer.columns}, spec);
          std::vector<float> values(found->values.size());
          dequantize(*g, spec, found->qparams, found->codes.data(), values.size(), 0, values.data());
          CHECK(values == found->values);
        }
      }
  }
}

TEST_CASE("gptq: a group that is scaled when it is reached has the scale that the observer of its spec finds") {
  constexpr size_t kColumns = 48;
  ColumnLayer layer = column_layer_of(60, kColumns);
  layer.x.assign(kColumns * kColumns, 0.0f);  // no column's error moves another
  for (size_t j = 0; j < kColumns; ++j) layer.x[j * kColumns + j] = 1;
  layer.changed = layer.x;
  constexpr struct {
    ColumnDtype dtype;
    ObserverId observer;
    bool refit;
  } kCases[] = {{kColumnDtypes[0], ObserverId::PerGroupMinMaxObserver, false},
                {kColumnDtypes[0], ObserverId::PerGroupMSEObserver, false},
                {kColumnDtypes[1], ObserverId::PerGroupMSEObserver, true},
                {kColumnDtypes[1], ObserverId::PerGroupMinMaxObserver, true},
                {kColumnDtypes[2], ObserverId::PerGroupMSEObserver, false},
                {kColumnDtypes[2], ObserverId::HQQObserver, false},
                {kColumnDtypes[5], ObserverId::PerBlockMXDiffsObserver, false},
                {kColumnDtypes[5], ObserverId::PerGroupMSEObserver, false},
                {kColumnDtypes[6], ObserverId::PerGroupMSEObserver, false}};
  for (const auto& row : kCases) {
    QuantizationSpec spec = column_spec(row.dtype, QScheme::per_group, 16);
    spec.observer = row.observer;
    spec.scale_refit = row.refit;
    const auto expected = observe_tensor(spec, layer.weight, {layer.rows, kColumns});
    REQUIRE(expected);
    const std::vector<QParams> of_range =
        min_max_scales(*granularity_of({layer.rows, kColumns}, spec), spec, layer.weight);
    bool differs = false;
    for (size_t i = 0; i < of_range.size(); ++i) differs |= of_range[i].scale != expected->qparams[i].scale;
    CHECK(differs == !needs_only_range(spec));
    for (const bool act_group_aware : {false, true}) {
      GptqOptions options;
      options.desc_act = options.static_groups = false;
      options.act_group_aware = act_group_aware;
      const auto found = run_columns(ColumnMethod::gptq, layer, spec, options);
      REQUIRE(found);
      CAPTURE(info_of(row.observer).name);
      REQUIRE(found->qparams.size() == expected->qparams.size());
      for (size_t i = 0; i < expected->qparams.size(); ++i) {
        CHECK(found->qparams[i].scale == expected->qparams[i].scale);
        CHECK(found->qparams[i].zero_point == expected->qparams[i].zero_point);
      }
    }
  }
}

TEST_CASE("column-wise algorithms: a group wider than the row is the whole row") {
  for (const size_t columns : {1, 9, 40})
    for (const ColumnDtype& dtype : kColumnDtypes)
      for (const ColumnMethod method : kColumnMethodsAll) {
        if (dtype.dtype == Dtype::bfloat16) continue;
        const ColumnLayer layer = column_layer_of(6, columns);
        const auto whole = run_columns(method, layer, column_spec(dtype, QScheme::per_group, -1), {});
        const auto wider = run_columns(method, layer, column_spec(dtype, QScheme::per_group, 1000), {});
        REQUIRE(whole);
        REQUIRE(wider);
        CHECK(wider->values == whole->values);
        CHECK(wider->codes == whole->codes);
      }
}

TEST_CASE("column-wise algorithms: each group, a short one too, has the scales of its own columns") {
  const ColumnLayer layer = column_layer_of(7, 37);
  for (const ColumnDtype& dtype : kColumnDtypes)
    for (const int64_t group_size : {5, 16, 36}) {
      if (dtype.dtype == Dtype::bfloat16 || dtype.scale_format == ScaleFormat::e4m3) continue;
      const QuantizationSpec spec = column_spec(dtype, QScheme::per_group, group_size);
      const auto groups = ColumnGroups::create(spec, layer.rows, layer.columns);
      REQUIRE(groups);
      const auto found = run_columns(ColumnMethod::gptq, layer, spec, {});
      REQUIRE(found);
      size_t covered = 0;
      for (size_t group = 0; group < groups->count(); ++group) {
        const ColumnRange range = (*groups)[group];
        CHECK(range.begin == covered);
        covered = range.end;
        CHECK(groups->of(range.begin) == group);
        CHECK(groups->of(range.end - 1) == group);
        const std::vector<QParams> expected = scales_of_columns(layer, spec, range);
        for (size_t row = 0; row < layer.rows; ++row) {
          CHECK(found->qparams[groups->scale_of(row, group)].scale == expected[row].scale);
          CHECK(found->qparams[groups->scale_of(row, group)].zero_point == expected[row].zero_point);
        }
      }
      CHECK(covered == layer.columns);
    }
}

TEST_CASE("column-wise algorithms beat rounding to nearest with and without a short last group") {
  const size_t rows = 40, columns = 100, tokens = 400;
  RandomValues random(3);
  ColumnLayer layer{rows, columns, random.vector(rows * columns), random.inputs(tokens, columns), {}};
  layer.changed = layer.x;
  for (const ColumnDtype& dtype : kColumnDtypes)
    for (const int64_t group_size : {32, 48, 99}) {
      if (dtype.dtype == Dtype::bfloat16) continue;
      const QuantizationSpec spec = column_spec(dtype, QScheme::per_group, group_size);
      const auto nearest = run_columns(ColumnMethod::nearest, layer, spec, {});
      REQUIRE(nearest);
      const double plain = output_error(layer.x, layer.weight, nearest->values, columns);
      for (const ColumnMethod method : kColumnRounding) {
        CAPTURE(static_cast<int>(method));
        const auto found = run_columns(method, layer, spec, {});
        REQUIRE(found);
        CHECK(output_error(layer.x, layer.weight, found->values, columns) < plain);
      }
    }
}
