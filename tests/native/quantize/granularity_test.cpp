// Granularity against the definition by coordinates: swap ch_axis with the last dimension, cut rows into groups.
#include <doctest/doctest.h>

#include <numeric>
#include <vector>

#include "quantize/granularity.h"

using namespace wasmquant;
using Shape = std::vector<uint64_t>;

namespace {

QuantizationSpec granularity_spec_of(QScheme qscheme, int64_t ch_axis = 0, int64_t group_size = 0) {
  QuantizationSpec spec;
  spec.qscheme = qscheme;
  spec.ch_axis = ch_axis;
  spec.group_size = group_size;
  return spec;
}

size_t granularity_elements_of(const Shape& shape) {
  return static_cast<size_t>(std::accumulate(shape.begin(), shape.end(), uint64_t{1}, std::multiplies<>()));
}

Shape coordinates_of(uint64_t flat, const Shape& shape) {
  Shape at(shape.size());
  for (size_t d = shape.size(); d-- > 0; flat /= shape[d]) at[d] = flat % shape[d];
  return at;
}

// Index into the scales in scale_shape order, from coordinates alone.
uint64_t slow_scale(uint64_t flat, const Shape& shape, QScheme qscheme, size_t axis, uint64_t group) {
  if (qscheme == QScheme::per_tensor) return 0;
  Shape at = coordinates_of(flat, shape), swapped = shape;
  if (qscheme == QScheme::per_channel) return at[axis];
  std::swap(at[axis], at.back());
  std::swap(swapped[axis], swapped.back());
  uint64_t row = 0;
  for (size_t d = 0; d + 1 < shape.size(); ++d) row = row * swapped[d] + at[d];
  return row * ((swapped.back() + group - 1) / group) + at.back() / group;
}

// scale_shape order of each element's scale, by for_each_run over pieces of `piece` elements.
std::vector<uint64_t> scales_by_runs(const Granularity& g, uint64_t piece) {
  std::vector<float> internal(static_cast<size_t>(g.scale_count())), ordered(internal.size());
  std::iota(internal.begin(), internal.end(), 0.0f);
  from_scale_shape_order(g, internal.data(), ordered.data());  // ordered[internal index] = index in scale_shape order
  std::vector<uint64_t> scales;
  for (uint64_t begin = 0; begin < g.element_count(); begin += piece)
    for_each_run(g, begin, std::min(begin + piece, g.element_count()), [&](const Run& run) {
      CHECK(run.begin == scales.size());
      CHECK(run.count > 0);
      for (uint64_t i = 0; i < run.count; ++i)
        scales.push_back(static_cast<uint64_t>(ordered[static_cast<size_t>(run.scale + i * run.scale_stride)]));
    });
  return scales;
}

void check_against_coordinates(const Shape& shape, QScheme qscheme, size_t axis, uint64_t group,
                               Dtype dtype = Dtype::int8) {
  const auto rank = static_cast<int64_t>(shape.size());
  std::vector<uint64_t> expected(granularity_elements_of(shape));
  for (size_t i = 0; i < expected.size(); ++i) expected[i] = slow_scale(i, shape, qscheme, axis, group);
  for (const int64_t ch_axis : {static_cast<int64_t>(axis), static_cast<int64_t>(axis) - rank}) {
    QuantizationSpec spec = granularity_spec_of(qscheme, ch_axis, static_cast<int64_t>(group));
    spec.dtype = dtype;
    const auto g = granularity_of(shape, spec);
    REQUIRE(static_cast<bool>(g));
    CHECK(g->element_count() == expected.size());
    CHECK(granularity_elements_of(g->scale_shape) == g->scale_count());
    for (const uint64_t piece : {uint64_t{1}, uint64_t{5}, uint64_t{1000}})
      CHECK(scales_by_runs(*g, piece) == expected);
  }
}

}  // namespace

TEST_CASE("granularity: every axis and group size of shapes up to four dimensions") {
  const std::vector<Shape> shapes = {{7},       {8},       {1},       {4, 6},       {1, 6},      {6, 1},
                                     {2, 3, 4}, {3, 1, 4}, {4, 2, 1}, {2, 3, 4, 6}, {1, 4, 1, 2}};
  for (const Shape& shape : shapes) {
    check_against_coordinates(shape, QScheme::per_tensor, 0, 1);
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      CAPTURE(shape.size());
      CAPTURE(axis);
      check_against_coordinates(shape, QScheme::per_channel, axis, 1);
      for (uint64_t group = 1; group <= shape[axis] + 1; ++group) {
        if (shape[axis] % group == 0) check_against_coordinates(shape, QScheme::per_group, axis, group);
        check_against_coordinates(shape, QScheme::per_group, axis, group, Dtype::fp4);
      }
    }
  }
}

TEST_CASE("granularity: run_length completes whole scales, in order") {
  for (const Shape& shape : {Shape{4, 6}, Shape{1, 6}, Shape{2, 3, 4}, Shape{12}})
    for (size_t axis = 0; axis < shape.size(); ++axis)
      for (const QScheme qscheme : {QScheme::per_tensor, QScheme::per_channel, QScheme::per_group}) {
        const auto g = granularity_of(shape, granularity_spec_of(qscheme, static_cast<int64_t>(axis), -1));
        REQUIRE(static_cast<bool>(g));
        const std::optional<uint64_t> step = g->run_length();
        if (!step) continue;
        CHECK(*step * g->scale_count() == g->element_count());
        for_each_run(*g, 0, g->element_count(), [&](const Run& run) { CHECK(run.scale == run.begin / *step); });
      }
  const auto rows = granularity_of({4, 6}, granularity_spec_of(QScheme::per_channel, 0));
  CHECK(rows->run_length() == 6);
  const auto groups = granularity_of({4, 6}, granularity_spec_of(QScheme::per_group, -1, 3));
  CHECK(groups->run_length() == 3);
  const auto columns = granularity_of({4, 6}, granularity_spec_of(QScheme::per_channel, 1));
  CHECK_FALSE(columns->run_length().has_value());
  QuantizationSpec floats = granularity_spec_of(QScheme::per_group, -1, 4);
  floats.dtype = Dtype::fp4;
  const auto short_last = granularity_of({4, 6}, floats);
  CHECK_FALSE(short_last->run_length().has_value());
}

TEST_CASE("granularity: shapes of the scales") {
  CHECK(granularity_of({4, 6}, granularity_spec_of(QScheme::per_tensor))->scale_shape == Shape{});
  CHECK(granularity_of({}, granularity_spec_of(QScheme::per_tensor))->element_count() == 1);
  CHECK(granularity_of({4, 6}, granularity_spec_of(QScheme::per_channel, -1))->scale_shape == Shape{6});
  CHECK(granularity_of({4, 6}, granularity_spec_of(QScheme::per_group, 1, 3))->scale_shape == Shape{4, 2});
  CHECK(granularity_of({4, 6}, granularity_spec_of(QScheme::per_group, 0, 2))->scale_shape == Shape{6, 2});
  CHECK(granularity_of({2, 4, 6}, granularity_spec_of(QScheme::per_group, 1, -1))->scale_shape == Shape{12, 1});
  CHECK(granularity_of({0, 6}, granularity_spec_of(QScheme::per_channel, 1))->scale_count() == 6);
  CHECK(granularity_of({0, 6}, granularity_spec_of(QScheme::per_group, 1, 3))->scale_count() == 0);
  QuantizationSpec cast = granularity_spec_of(QScheme::per_group, 5, 0);
  cast.dtype = Dtype::bfloat16;
  CHECK(granularity_of({4, 6}, cast)->scale_count() == 1);
}

TEST_CASE("granularity: blocks of rows and columns") {
  QuantizationSpec spec = granularity_spec_of(QScheme::per_block);
  for (const Shape& shape : {Shape{4, 6}, Shape{5, 7}, Shape{1, 1}, Shape{8, 3}})
    for (spec.block_rows = 1; spec.block_rows <= 5; ++spec.block_rows)
      for (spec.block_columns = 1; spec.block_columns <= 5; ++spec.block_columns) {
        const auto g = granularity_of(shape, spec);
        REQUIRE(static_cast<bool>(g));
        const uint64_t columns = (shape[1] + spec.block_columns - 1) / spec.block_columns;
        CHECK(g->scale_shape == Shape{(shape[0] + spec.block_rows - 1) / spec.block_rows, columns});
        CHECK(granularity_elements_of(g->scale_shape) == g->scale_count());
        std::vector<uint64_t> expected;
        for (uint64_t row = 0; row < shape[0]; ++row)
          for (uint64_t column = 0; column < shape[1]; ++column)
            expected.push_back(row / spec.block_rows * columns + column / spec.block_columns);
        for (const uint64_t piece : {uint64_t{1}, uint64_t{5}, uint64_t{1000}})
          CHECK(scales_by_runs(*g, piece) == expected);
      }
  CHECK_FALSE(static_cast<bool>(granularity_of({2, 2, 2}, spec)));
}

TEST_CASE("granularity: errors say what was found and what is allowed") {
  const auto message_of = [](const Shape& shape, const QuantizationSpec& spec, ErrorCode code) {
    const auto g = granularity_of(shape, spec);
    REQUIRE_FALSE(static_cast<bool>(g));
    CHECK(g.error().code == code);
    return g.error().message;
  };
  CHECK(message_of({16, 96}, granularity_spec_of(QScheme::per_group, -1, 64), ErrorCode::group_size_invalid) ==
        "group_size 64 does not divide axis 1 of shape [16, 96]; sizes that fit: 32, 16 and 96 (-1 is the whole axis)");
  CHECK(message_of({16, 684}, granularity_spec_of(QScheme::per_group, -1, 128), ErrorCode::group_size_invalid)
            .find("sizes that fit: 228, 171, 114, 76, 57, 38 and 684") != std::string::npos);
  CHECK(message_of({16, 4096}, granularity_spec_of(QScheme::per_group, 1, 0), ErrorCode::group_size_invalid)
            .find("128, 64, 32, 16 and 4096") != std::string::npos);
  CHECK(message_of({16, 7}, granularity_spec_of(QScheme::per_group, 1, 14), ErrorCode::group_size_invalid)
            .find("fit: 7 ") != std::string::npos);
  CHECK(message_of({4, 6}, granularity_spec_of(QScheme::per_channel, 2), ErrorCode::shape_mismatch).find("-2 to 1") !=
        std::string::npos);
  CHECK(
      message_of({4, 6}, granularity_spec_of(QScheme::per_channel, -3), ErrorCode::shape_mismatch).find("ch_axis -3") !=
      std::string::npos);
  message_of({}, granularity_spec_of(QScheme::per_channel, 0), ErrorCode::shape_mismatch);
  message_of({4, 0}, granularity_spec_of(QScheme::per_group, 1, -1), ErrorCode::shape_mismatch);
  message_of({1u << 31, 1u << 31, 8}, granularity_spec_of(QScheme::per_tensor), ErrorCode::shape_mismatch);
  message_of({uint64_t{1} << 40, uint64_t{1} << 40, 0}, granularity_spec_of(QScheme::per_channel, 2),
             ErrorCode::shape_mismatch);
  message_of({4, 6}, granularity_spec_of(QScheme::per_block), ErrorCode::spec_invalid);
}
