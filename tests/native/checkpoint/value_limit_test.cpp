#include "checkpoint/layout/value_limit.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "checkpoint/checkpoint_format.h"
#include "numeric/minifloat.h"

using namespace wasmquant;

namespace {

WeightLayout value_limit_layout_of(const char* format, QuantizationSpec spec, StorageDtype source) {
  const WeightDescription weight{"l", "Linear", {64, 64}, source, PackMethod::reorder};
  auto layout = checkpoint_format_named(format)->layout(weight, {spec});
  REQUIRE(bool(layout));
  return std::move(*layout);
}

QuantizationSpec groups_of_32(Dtype dtype, bool symmetric) {
  QuantizationSpec spec;
  spec.dtype = dtype;
  spec.symmetric = symmetric;
  spec.qscheme = QScheme::per_group;
  spec.observer = ObserverId::PerGroupMinMaxObserver;
  spec.ch_axis = -1;
  spec.group_size = 32;
  return spec;
}

QuantizationSpec cast_to(Dtype dtype) {
  QuantizationSpec spec;
  spec.dtype = dtype;
  return spec;
}

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kMost = std::numeric_limits<float>::max();

}  // namespace

TEST_CASE("values end with their dtype's range, and rounding to infinity counts as outside") {
  const ValueLimit half = value_limit_of(value_limit_layout_of("quark", cast_to(Dtype::float16), StorageDtype::F32));
  CHECK(half.dtype == StorageDtype::F16);
  CHECK(half.largest == 65504);
  CHECK_FALSE(half.is_beyond(65519.99f));
  CHECK(half.is_beyond(65520));
  CHECK(half.is_beyond(-65520));
  CHECK(half.is_beyond(kInfinity));
  CHECK(half.is_beyond(std::nanf("")));
  CHECK_FALSE(half.depends_on_scales());
  const ValueLimit bf16 = value_limit_of(value_limit_layout_of("quark", cast_to(Dtype::bfloat16), StorageDtype::F32));
  CHECK(bf16.is_beyond(kMost));
  CHECK_FALSE(bf16.is_beyond(3.389e38f));
  CHECK(float_name_of(bf16.dtype) == "bfloat16");
  const ValueLimit fake =
      value_limit_of(value_limit_layout_of("fake-quantized", groups_of_32(Dtype::int4, true), StorageDtype::F16));
  CHECK(fake.dtype == StorageDtype::F16);
  CHECK(fake.largest_scale == kInfinity);
}

TEST_CASE("the largest scale keeps the outermost code finite; the next larger scale does not") {
  for (const char* format : {"compressed-tensors", "awq", "gptq", "quark"})
    for (const StorageDtype source : {StorageDtype::F32, StorageDtype::F16, StorageDtype::BF16}) {
      const bool is_awq = std::string_view(format) == "awq";
      const WeightLayout layout =
          value_limit_layout_of(format, groups_of_32(is_awq ? Dtype::uint4 : Dtype::int4, !is_awq), source);
      const ValueLimit limit = value_limit_of(layout);
      CAPTURE(format);
      CAPTURE(float_name_of(source));
      const float reach = is_awq ? 15 : 8;
      CHECK_FALSE(limit.is_beyond(reach * limit.largest_scale));
      CHECK(storable_scale(layout, limit.largest_scale, 1) == limit.largest_scale);
      float next = std::nextafter(limit.largest_scale, kInfinity);
      if (limit.dtype != StorageDtype::F32) {
        const FloatFormat stored = float_format_of(limit.dtype == StorageDtype::F16 ? Dtype::float16 : Dtype::bfloat16);
        next = decode(stored, encode(stored, limit.largest_scale, Overflow::saturate) + 1);
      }
      CHECK(next * reach > limit.largest);
      const QParams some[] = {{1, 0}, {limit.largest_scale, 0}, {next, 0}};
      CHECK_FALSE(limit.may_lose({some, 2}));
      CHECK(limit.may_lose(some));
    }
}

TEST_CASE("clamped scales: values more than a step outside the grid are lost") {
  QuantizationSpec spec = groups_of_32(Dtype::fp4, true);
  spec.scale_format = ScaleFormat::e5m3;
  const ValueLimit limit = value_limit_of(value_limit_layout_of("quark", spec, StorageDtype::F32));
  CHECK(limit.clamped_scale == 114688);
  CHECK(limit.depends_on_scales());
  CHECK(limit.step == 2);  // of fp4: 4, 6
  CHECK_FALSE(limit.is_lost(6.2f * 114688, 6.0f * 114688, 114688));
  CHECK(limit.is_lost(8.1f * 114688, 6.0f * 114688, 114688));
  CHECK_FALSE(limit.is_lost(8.1f * 1000, 6.0f * 1000, 1000));
}

TEST_CASE("weights in GGUF blocks are limited by their float16 scale") {
  for (const GgmlTypeInfo& row : kGgmlTypes) {
    if (!row.can_quantize()) continue;
    CAPTURE(row.name);
    const ValueLimit limit = value_limit_of(ggml_layout({4, 256}, StorageDtype::F32, row.type, "w"));
    const bool is_wide = row.type == GgmlType::f32 || row.type == GgmlType::mxfp4;
    CHECK(limit.largest == (is_wide ? kMost : row.type == GgmlType::bf16 ? 3.38953139e38f : 65504.0f));
  }
}
