// Plans run tile by tile: the bytes do not depend on tiles, and what was written decodes to what was meant.
#include "pipeline/session/session.h"

#include <doctest/doctest.h>

#include <limits>

#include "observers/registry.h"
#include "pipeline/memory_model.h"
#include "quantize/quantize.h"
#include "random_values.h"

using namespace wasmquant;
using namespace wasmquant::testing;

namespace {

std::vector<float> small_values(size_t count, uint32_t seed) { return normal_values(count, seed, 0, 0.05f); }

MemoryModel session_model_of(StorageDtype dtype, uint64_t rows, uint64_t columns) {
  MemoryModel model;
  model.add_file("model.safetensors", {{"a.q_proj.weight", dtype, {rows, columns}, small_values(rows * columns, 1)},
                                       {"a.q_proj.bias", dtype, {rows}, small_values(rows, 2)},
                                       {"a.norm.weight", dtype, {columns}, small_values(columns, 3)},
                                       {"lm_head.weight", dtype, {8, columns}, small_values(8 * columns, 4)}});
  return model;
}

std::string session_config_of(const std::string& spec) {
  return R"({"global_quant_config": {"weight": )" + spec + R"(}, "exclude": ["lm_head"]})";
}

struct SessionCase {
  const char* format;
  const char* spec;
};
const SessionCase kSessionCases[] = {
    {"compressed-tensors", R"({"dtype": "int4", "qscheme": "per_group", "group_size": 32})"},
    {"compressed-tensors", R"({"dtype": "uint4", "qscheme": "per_group", "group_size": 16, "symmetric": false})"},
    {"compressed-tensors", R"({"dtype": "int4", "qscheme": "per_channel", "ch_axis": 0, "symmetric": false})"},
    {"compressed-tensors", R"({"dtype": "int2", "qscheme": "per_group", "group_size": 32})"},
    {"compressed-tensors", R"({"dtype": "int8", "qscheme": "per_channel", "ch_axis": 0})"},
    {"compressed-tensors", R"({"dtype": "uint8", "qscheme": "per_channel", "ch_axis": 0, "symmetric": false})"},
    {"compressed-tensors", R"({"dtype": "int8", "qscheme": "per_tensor"})"},
    {"compressed-tensors", R"({"dtype": "int8", "qscheme": "per_group", "group_size": 48})"},
    {"compressed-tensors", R"({"dtype": "fp8_e4m3", "qscheme": "per_channel", "ch_axis": 0})"},
    {"compressed-tensors", R"({"dtype": "fp8_e4m3", "qscheme": "per_tensor"})"},
    {"compressed-tensors", R"({"dtype": "bfloat16"})"},
    {"quark", R"({"dtype": "int4", "qscheme": "per_group", "group_size": 32})"},
    {"quark", R"({"dtype": "uint4", "qscheme": "per_group", "group_size": 32, "symmetric": false})"},
    {"quark", R"({"dtype": "int4", "qscheme": "per_channel", "ch_axis": 0, "symmetric": false})"},
    {"quark", R"({"dtype": "uint4", "qscheme": "per_tensor", "symmetric": false})"},
    {"quark", R"({"dtype": "int8", "qscheme": "per_group", "group_size": 32, "symmetric": false})"},
    {"quark", R"({"dtype": "uint8", "qscheme": "per_channel", "ch_axis": 0, "symmetric": false})"},
    {"quark", R"({"dtype": "int8", "qscheme": "per_tensor", "symmetric": false})"},
    {"quark", R"({"dtype": "int3", "qscheme": "per_group", "group_size": 32, "symmetric": false})"},
    {"quark", R"({"dtype": "int2", "qscheme": "per_group", "group_size": 32})"},
    {"quark", R"({"dtype": "fp8_e5m2", "qscheme": "per_tensor"})"},
    {"quark", R"({"dtype": "float16"})"},
    {"fake-quantized", R"({"dtype": "int4", "qscheme": "per_group", "group_size": 32})"},
    {"fake-quantized", R"({"dtype": "int4", "qscheme": "per_group", "ch_axis": 0, "group_size": 4})"},
    {"fake-quantized", R"({"dtype": "int8", "qscheme": "per_channel", "ch_axis": 1})"},
    {"fake-quantized", R"({"dtype": "int16", "qscheme": "per_channel", "ch_axis": 0})"},
    // Observers that see the whole tensor, once or twice.
    {"compressed-tensors", R"({"dtype": "int8", "qscheme": "per_tensor", "observer_cls": "PerTensorMSEObserver"})"},
    {"compressed-tensors", R"({"dtype": "uint8", "observer_cls": "PerTensorPercentileObserver", "symmetric": false,
                               "observer_options": {"percentile": 99}})"},
    {"compressed-tensors", R"({"dtype": "uint8", "observer_cls": "PerChannelPowOf2MinMSEObserver", "ch_axis": 0})"},
    {"quark", R"({"dtype": "int8", "observer_cls": "PerTensorHistogramObserverPro"})"},
    {"quark", R"({"dtype": "uint4", "observer_cls": "PerChannelRangeMSEObserver", "ch_axis": 0, "symmetric": false,
                  "observer_options": {"search": "grid", "candidates": 20, "range_margin": 0.01}})"},
    {"fake-quantized", R"({"dtype": "int8", "observer_cls": "PerTensorPowOf2MinMaxObserver"})"},
    // Observers that search scale by scale, tile by tile.
    {"compressed-tensors",
     R"({"dtype": "int4", "qscheme": "per_group", "group_size": 32, "observer_cls": "PerGroupMSE"})"},
    {"quark",
     R"({"dtype": "uint4", "qscheme": "per_group", "group_size": 64, "symmetric": false, "observer_cls": "HQQ"})"},
    {"compressed-tensors",
     R"({"dtype": "int4", "qscheme": "per_channel", "ch_axis": 0, "observer_cls": "PerChannelMSE"})"},
    {"fake-quantized", R"({"dtype": "int4", "qscheme": "per_group", "ch_axis": 0, "group_size": 4,
                           "observer_cls": "PerGroupMSE"})"},
    // Symmetric unsigned codes have their zero point, too.
    {"compressed-tensors", R"({"dtype": "uint8", "qscheme": "per_channel", "ch_axis": 0, "symmetric": true})"},
    {"compressed-tensors", R"({"dtype": "uint4", "qscheme": "per_group", "group_size": 32, "symmetric": true})"},
    // Grids of other dialects.
    {"compressed-tensors", R"({"dtype": "int8", "qscheme": "per_channel", "ch_axis": 0, "grid":
        {"divisor": "largest_code", "sign_by_data": true, "divides": true, "smallest_scale": 1e-8}})"},
    {"quark", R"({"dtype": "int4", "qscheme": "per_group", "group_size": 32, "grid":
        {"divisor": "smallest_code", "sign_by_data": true, "narrow": true, "smallest_scale": 1e-8}})"},
    {"fake-quantized", R"({"dtype": "uint4", "qscheme": "per_channel", "ch_axis": 0, "symmetric": false, "grid":
        {"zero_point_order": "after_rounding", "divides": true, "max_includes_zero": false}})"},
    {"awq", R"({"dtype": "uint4", "qscheme": "per_group", "group_size": 32, "symmetric": false})"},
    {"awq",
     R"({"dtype": "uint4", "qscheme": "per_group", "group_size": 64, "symmetric": false, "observer_cls": "HQQ"})"},
    {"gptq", R"({"dtype": "int4", "qscheme": "per_group", "group_size": 48})"},
    {"gptq", R"({"dtype": "int8", "qscheme": "per_group", "group_size": 64})"},
    {"gptq", R"({"dtype": "uint4", "qscheme": "per_group", "group_size": 64, "symmetric": false})"},
    {"gptq", R"({"dtype": "uint8", "qscheme": "per_group", "group_size": 48, "symmetric": false})"},
    {"gptq", R"({"dtype": "int4", "qscheme": "per_group", "group_size": 64, "observer_cls": "PerGroupMSE"})"},
    // Two stages.
    {"quark", R"([{"dtype": "fp8_e4m3", "qscheme": "per_tensor"},
                  {"dtype": "int4", "qscheme": "per_channel", "ch_axis": 0}])"},
    {"quark", R"([{"dtype": "fp8_e4m3", "qscheme": "per_tensor"},
                  {"dtype": "uint4", "qscheme": "per_group", "group_size": 32, "symmetric": false}])"},
    {"quark", R"([{"dtype": "fp8_e4m3", "qscheme": "per_tensor"},
                  {"dtype": "int8", "qscheme": "per_channel", "ch_axis": 0}])"},
    {"quark", R"([{"dtype": "fp4", "qscheme": "per_group", "group_size": 16, "ch_axis": -1},
                  {"dtype": "fp8_e4m3", "qscheme": "per_tensor", "is_scale_quant": true}])"},
    {"fake-quantized", R"([{"dtype": "fp8_e4m3", "qscheme": "per_tensor"},
                           {"dtype": "int4", "qscheme": "per_channel", "ch_axis": 0}])"},
    {"fake-quantized", R"([{"dtype": "fp4", "qscheme": "per_group", "group_size": 16, "ch_axis": -1},
                           {"dtype": "fp8_e4m3", "qscheme": "per_tensor", "is_scale_quant": true}])"},
};

Plan session_plan_of(const ModelIndex& index, const SessionCase& c, uint64_t tile_bytes) {
  List<Diagnostic> diagnostics;
  PlanOptions options;
  options.format = c.format;
  options.tile_bytes = {tile_bytes, tile_bytes};
  auto plan = make_plan(index, session_config_of(c.spec), options, diagnostics);
  if (!plan) MESSAGE(plan.error().where << ": " << plan.error().message);
  REQUIRE(bool(plan));
  return std::move(*plan);
}

// The values that the spec itself gives, from the whole tensor at once.
std::vector<float> session_expected_values(std::vector<float> x, const std::vector<uint64_t>& shape,
                                           const WeightLayout& layout, StorageDtype source, bool fake) {
  const QuantizationSpec& spec = layout.spec;
  if (source == StorageDtype::BF16) {
    std::vector<uint16_t> bits(x.size());
    kernels::narrow_bf16(x, bits.data());
    kernels::widen_bf16(bits, x.data());
  }
  std::vector<float> y(x.size());
  std::vector<uint16_t> bits(x.size());
  if (spec.dtype == Dtype::bfloat16 || spec.dtype == Dtype::float16) {
    (spec.dtype == Dtype::bfloat16 ? kernels::narrow_bf16 : kernels::narrow_f16)(x, bits.data());
    (spec.dtype == Dtype::bfloat16 ? kernels::widen_bf16 : kernels::widen_f16)(bits, y.data());
    return y;
  }
  if (layout.stages.size() == 2) {
    const auto stages = TwoStages::create(layout.stages[0], layout.stages[1], shape);
    REQUIRE(bool(stages));
    RangeObserver ranges(stages->granularity(), stages->code_spec());
    ranges.update(x, 0);
    TwoStages::Scales scales = stages->scales_of(ranges.min(), ranges.max());
    std::vector<uint8_t> codes(x.size());
    stages->quantize(scales, x, 0, codes.data());
    stages->dequantize(scales, codes.data(), x.size(), 0, y.data());
    if (fake && source == StorageDtype::BF16) {
      kernels::narrow_bf16(y, bits.data());
      kernels::widen_bf16(bits, y.data());
    }
    return y;
  }
  const Granularity g = *granularity_of(shape, spec);
  const auto observation = observe_tensor(spec, x, shape);
  REQUIRE(bool(observation));
  std::vector<QParams> qparams = observation->qparams;
  if (fake) {
    fake_quantize(g, spec, qparams, x, 0, y.data());
    if (source == StorageDtype::BF16) {
      kernels::narrow_bf16(y, bits.data());
      kernels::widen_bf16(bits, y.data());
    }
    return y;
  }
  for (QParams& q : qparams) q.scale = storable_scale(layout, q.scale, 1.0f);
  std::vector<uint8_t> codes(x.size());
  quantize(g, spec, qparams, kernels::Path::real, x, 0, codes.data());
  dequantize(g, spec, qparams, codes.data(), x.size(), 0, y.data());
  return y;
}

}  // namespace

TEST_CASE("output bytes and sums are the same for every tile size and order") {
  for (const StorageDtype dtype : {StorageDtype::F32, StorageDtype::BF16}) {
    const MemoryModel model = session_model_of(dtype, 104, 960);
    const ModelIndex index = model.index();
    for (const SessionCase& c : kSessionCases) {
      CAPTURE(std::string(c.format));
      CAPTURE(std::string(c.spec));
      auto whole = run_plan(model, session_plan_of(index, c, 64u << 20));
      REQUIRE(bool(whole));
      for (const uint64_t tile_bytes : {uint64_t{1}, uint64_t{50'000}, uint64_t{1} << 17}) {
        auto tiled = run_plan(model, session_plan_of(index, c, tile_bytes), tile_bytes == 50'000);
        REQUIRE(bool(tiled));
        CHECK(tiled->model.files == whole->model.files);
        for (size_t t = 0; t < whole->sums.size(); ++t) {
          CHECK(tiled->sums[t].noise == whole->sums[t].noise);
          CHECK(tiled->sums[t].signal == whole->sums[t].signal);
          CHECK(tiled->sums[t].quantized == whole->sums[t].quantized);
          CHECK(tiled->sums[t].max_abs == whole->sums[t].max_abs);
          CHECK(tiled->sums[t].count == whole->sums[t].count);
        }
      }
    }
  }
}

TEST_CASE("written codes decode to the values of the spec, bit for bit") {
  for (const StorageDtype dtype : {StorageDtype::F32, StorageDtype::BF16}) {
    const MemoryModel model = session_model_of(dtype, 72, 192);
    const ModelIndex index = model.index();
    for (const SessionCase& c : kSessionCases) {
      CAPTURE(std::string(c.format));
      CAPTURE(std::string(c.spec));
      const Plan plan = session_plan_of(index, c, 20'000);
      auto out = run_plan(model, plan);
      REQUIRE(bool(out));
      json::Value config;
      config.set("quantization_config", plan.quantization_config);
      auto compared = compare_models(index, {}, out->model.read_index(), config, {10'000, 10'000});
      REQUIRE(bool(compared));
      for (const Diagnostic& found : compared->diagnostics) FAIL_CHECK(found.where, ": ", found.message);
      REQUIRE(compared->pairs.size() == 3);
      for (const ComparedPair& pair : compared->pairs) {
        if (pair.name != "a.q_proj.weight") continue;
        const WeightLayout& layout = plan.tensors[index.find(pair.name) - index.tensors().data()].task.layout;
        const std::vector<float> right = decode_all(out->model, pair.right);
        const std::vector<float> expected = session_expected_values(small_values(72 * 192, 1), {72, 192}, layout, dtype,
                                                                    std::string(c.format) == "fake-quantized");
        CHECK(right == expected);
        const std::vector<float> left = decode_all(model, pair.left);
        CHECK(left.size() == right.size());
        const kernels::ErrorSums error = kernels::error_between(left, right.data());
        CHECK(error.max_abs == out->sums[index.find(pair.name) - index.tensors().data()].max_abs);
      }
    }
  }
}

TEST_CASE("odd shapes are refused, or written and read back whole") {
  std::vector<SessionCase> cases(std::begin(kSessionCases), std::end(kSessionCases));
  for (const char* blocks : {R"({"dtype": "mx6", "ch_axis": -1})", R"({"dtype": "mx9", "ch_axis": -1})",
                             R"({"dtype": "bfp16", "ch_axis": -1})"})
    for (const char* format : {"quark", "fake-quantized"}) cases.push_back({format, blocks});
  constexpr uint64_t kShapes[][2] = {{1, 1}, {1, 90}, {3, 7}, {4, 90}, {13, 60}, {60, 13}, {5, 250}, {9, 32}};
  size_t written = 0;
  for (const auto& shape : kShapes) {
    const MemoryModel model = session_model_of(StorageDtype::F32, shape[0], shape[1]);
    const ModelIndex index = model.index();
    for (const SessionCase& c : cases) {
      CAPTURE(shape[0]);
      CAPTURE(shape[1]);
      CAPTURE(std::string(c.format));
      CAPTURE(std::string(c.spec));
      List<Diagnostic> diagnostics;
      PlanOptions options;
      options.format = c.format;
      auto plan = make_plan(index, session_config_of(c.spec), options, diagnostics);
      if (!plan) continue;
      auto out = run_plan(model, *plan);
      if (!out) {
        CHECK(out.error().code == ErrorCode::format_unsupported);
        continue;
      }
      ++written;
      json::Value config;
      config.set("quantization_config", plan->quantization_config);
      auto compared = compare_models(index, {}, out->model.index(), config, {10'000, 10'000});
      REQUIRE(bool(compared));
      for (const ComparedPair& pair : compared->pairs)
        if (pair.name == "a.q_proj.weight") CHECK(decode_all(out->model, pair.right).size() == shape[0] * shape[1]);
    }
  }
  CHECK(written > 100);
}

TEST_CASE("a weight that is not finite is named with its element, unless the config saturates") {
  for (const char* spec : {R"({"dtype": "int4", "qscheme": "per_group", "group_size": 32})",
                           R"({"dtype": "int8", "qscheme": "per_tensor"})",
                           R"({"dtype": "uint8", "qscheme": "per_channel", "ch_axis": 0, "symmetric": false})",
                           R"({"dtype": "bfloat16"})"}) {
    CAPTURE(spec);
    MemoryModel model;
    std::vector<float> values = small_values(64 * 64, 7);
    values[40 * 64 + 9] = std::numeric_limits<float>::quiet_NaN();
    model.add_file("m.safetensors", {{"l.weight", StorageDtype::F32, {64, 64}, values}});
    const ModelIndex index = model.index();
    for (const char* format : {"compressed-tensors", "quark", "fake-quantized"}) {
      auto run = run_plan(model, session_plan_of(index, {format, spec}, 4096));
      REQUIRE(!run);
      CHECK(run.error().code == ErrorCode::value_not_finite);
      CHECK(run.error().where == "l.weight");
      CHECK(run.error().message.find("NaN at element 2569 (row 40, column 9)") != std::string::npos);
    }
    List<Diagnostic> diagnostics;
    auto plan =
        make_plan(index, std::string(R"({"non_finite": "saturate", "global_quant_config": {"weight": )") + spec + "}}",
                  {}, diagnostics);
    REQUIRE(bool(plan));
    CHECK(bool(run_plan(model, *plan)));
  }
}

TEST_CASE(
    "aihwkit: codes that become unsigned because no value is negative do not fit a file laid out for signed ones") {
  MemoryModel model;
  std::vector<float> values = small_values(64 * 64, 7);
  for (float& value : values) value = std::abs(value);
  model.add_file("m.safetensors", {{"l.weight", StorageDtype::F32, {64, 64}, values}});
  const ModelIndex index = model.index();
  const char* spec =
      R"({"dtype": "int8", "qscheme": "per_tensor", "grid": {"sign_by_data": true, "divisor": "largest_code"}})";
  auto refused = run_plan(model, session_plan_of(index, {"compressed-tensors", spec}, 4096));
  REQUIRE(!refused);
  CHECK(refused.error().code == ErrorCode::format_unsupported);
  CHECK(refused.error().message.find("would be uint8") != std::string::npos);
  auto simulated = run_plan(model, session_plan_of(index, {"fake-quantized", spec}, 4096));
  REQUIRE(bool(simulated));
  const double noise = simulated->sums[0].noise;
  const char* signed_spec = R"({"dtype": "int8", "qscheme": "per_tensor"})";
  CHECK(noise < 0.5 * run_plan(model, session_plan_of(index, {"fake-quantized", signed_spec}, 4096))->sums[0].noise);
}
