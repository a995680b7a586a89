// Finite weights that would be read back as infinity: refused with the same element for every size of tiles, or
// clamped where the config saturates.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "kernels/ggml/ggml_blocks.h"
#include "pipeline/memory_model.h"
#include "pipeline/session/store_modified_weight.h"
#include "random_values.h"

using namespace wasmquant;
using namespace wasmquant::testing;

namespace {

constexpr uint64_t kRows = 640, kColumns = 256;  // three units of rows, two of columns

std::vector<float> weights_with(std::initializer_list<std::pair<uint64_t, float>> large) {
  std::vector<float> x = normal_values(kRows * kColumns, 3, 0, 0.05f);
  for (const auto& [element, value] : large) x[element] = value;
  return x;
}

MemoryModel session_limits_model_of(StorageDtype dtype, const std::vector<float>& values) {
  MemoryModel model;
  model.add_file("m.safetensors", {{"l.weight", dtype, {kRows, kColumns}, values}});
  return model;
}

Result<RunResult> run(const MemoryModel& model, const char* format, const std::string& spec, uint64_t tile_bytes,
                      bool saturates = false) {
  PlanOptions options;
  options.format = format;
  options.tile_bytes = {tile_bytes, tile_bytes};
  List<Diagnostic> diagnostics;
  const ModelIndex index = model.index();
  auto plan = make_plan(index,
                        R"({"global_quant_config": {"weight": )" + spec + R"(}, "layer_types": {"l": "Linear"}, )" +
                            (saturates ? R"("non_finite": "saturate"})" : R"("non_finite": "error"})"),
                        options, diagnostics);
  if (!plan) MESSAGE(plan.error().message);
  REQUIRE(bool(plan));
  return run_plan(model, *plan);
}

void check_refused(const Error& error, ErrorCode code, const std::string& words) {
  CHECK(error.code == code);
  CHECK(error.where == "l.weight");
  CAPTURE(error.message);
  CHECK(error.message.find(words) != std::string::npos);
  CHECK(error.message.find("\"non_finite\": \"saturate\"") != std::string::npos);
}

struct SessionLimitsCase {
  const char* format;
  const char* spec;
  StorageDtype source;
  float value;
  const char* words;
};

const char* const kSessionLimitsInt4 = R"({"dtype": "int4", "qscheme": "per_group", "ch_axis": -1, "group_size": 32})";
// Scales of fake-quantized are of the dtype of the weight unless the spec says otherwise.
const char* const kInt4Float32Scales =
    R"({"dtype": "int4", "qscheme": "per_group", "ch_axis": -1, "group_size": 32, "scale_type": "float32"})";
const char* const kUint4 =
    R"({"dtype": "uint4", "symmetric": false, "qscheme": "per_group", "ch_axis": -1, "group_size": 32})";
const char* const kAmdFp4 =
    R"({"dtype": "fp4", "qscheme": "per_group", "ch_axis": -1, "group_size": 16, "scale_format": "e5m3"})";
const SessionLimitsCase kSessionLimitsCases[] = {
    {"quark", R"({"dtype": "float16"})", StorageDtype::F32, 70000, "is beyond float16, whose largest value is 65504"},
    {"fake-quantized", R"({"dtype": "float16"})", StorageDtype::BF16, -1e6f, "is beyond float16"},
    {"quark", R"({"dtype": "bfloat16"})", StorageDtype::F32, 3.4e38f, "is beyond bfloat16"},
    {"fake-quantized", kInt4Float32Scales, StorageDtype::F16, -65504, "beyond float16"},
    {"fake-quantized", R"({"dtype": "int4", "qscheme": "per_tensor", "scale_type": "float32"})", StorageDtype::F16,
     -65504, "beyond float16"},
    {"fake-quantized", R"({"dtype": "bfp16"})", StorageDtype::F16, 65504, "beyond float16"},
    {"fake-quantized", kSessionLimitsInt4, StorageDtype::F32, -3.4e38f, "beyond float32"},
    {"compressed-tensors", kSessionLimitsInt4, StorageDtype::F16, -65000, "beyond float16"},
    {"compressed-tensors", R"({"dtype": "int8", "qscheme": "per_channel", "ch_axis": 0})", StorageDtype::F32, -3.4e38f,
     "beyond float32"},
    {"quark", R"({"dtype": "int4", "qscheme": "per_tensor"})", StorageDtype::F32, -3.4e38f, "beyond float32"},
    {"quark", R"({"dtype": "bfp16"})", StorageDtype::F32, 3.4e38f, "beyond float32"},
    {"quark", kAmdFp4, StorageDtype::F32, 1e6f, "needs a larger scale than 114688"},
    {"awq", kUint4, StorageDtype::F32, 1e6f, "beyond float16"},
    {"awq", kUint4, StorageDtype::BF16, -1e6f, "beyond float16"},
    {"gptq", kSessionLimitsInt4, StorageDtype::F32, 1e6f, "beyond float16"},
    {"gptq", kUint4, StorageDtype::F32, 1e30f, "beyond float16"},
};

}  // namespace

TEST_CASE("a finite weight that would become infinite is refused with its element, the same for all tiles") {
  for (const SessionLimitsCase& c : kSessionLimitsCases) {
    CAPTURE(std::string(c.format));
    CAPTURE(std::string(c.spec));
    const bool by_columns = std::string_view(c.format) == "awq" || std::string_view(c.format) == "gptq";
    // Two in one tile: the first by lines of the layout is named.
    const MemoryModel model = session_limits_model_of(c.source, weights_with({{400 * kColumns + 200, c.value},
                                                                              {401 * kColumns + 201, c.value},
                                                                              {600 * kColumns + 195, c.value}}));
    const std::string place =
        by_columns ? "at element 153795 (row 600, column 195)" : "at element 102600 (row 400, column 200)";
    for (const uint64_t tile_bytes : {uint64_t{1}, uint64_t{9000}, uint64_t{1} << 20}) {
      auto found = run(model, c.format, c.spec, tile_bytes);
      CHECK(!found);
      if (found) continue;
      check_refused(found.error(), ErrorCode::value_overflow, c.words);
      CHECK(found.error().message.find(place) != std::string::npos);
    }
  }
}

TEST_CASE("saturating clamps to the largest finite value, with any tiles") {
  for (const SessionLimitsCase& c : kSessionLimitsCases) {
    CAPTURE(std::string(c.format));
    CAPTURE(std::string(c.spec));
    const MemoryModel model = session_limits_model_of(c.source, weights_with({{400 * kColumns + 200, c.value}}));
    auto whole = run(model, c.format, c.spec, 1 << 20, true), tiled = run(model, c.format, c.spec, 1, true);
    REQUIRE(bool(whole));
    REQUIRE(bool(tiled));
    CHECK(whole->model.files == tiled->model.files);
    CHECK(whole->sums.front().all_finite());
    CHECK(whole->sums.front().count == kRows * kColumns);
  }
  const MemoryModel model = session_limits_model_of(StorageDtype::F32, weights_with({{7, 70000}, {8, -1e30f}}));
  auto halves = run(model, "fake-quantized", R"({"dtype": "float16"})", 1 << 20, true);
  REQUIRE(bool(halves));
  const auto* bits = reinterpret_cast<const uint16_t*>(halves->model.files.front().data() +
                                                       (halves->model.files.front().size() - 2 * kRows * kColumns));
  CHECK(bits[7] == 0x7BFF);
  CHECK(bits[8] == 0xFBFF);
}

TEST_CASE("the largest weight that float16 holds is not refused") {
  for (const SessionLimitsCase& c :
       {SessionLimitsCase{"quark", R"({"dtype": "float16"})", StorageDtype::F32, 65519, ""},
        SessionLimitsCase{"compressed-tensors", kSessionLimitsInt4, StorageDtype::F16, -60000, ""},
        SessionLimitsCase{"awq", kUint4, StorageDtype::F32, 60000, ""}}) {
    CAPTURE(std::string(c.format));
    auto found = run(session_limits_model_of(c.source, weights_with({{77, c.value}})), c.format, c.spec, 1 << 20);
    if (!found) MESSAGE(found.error().message);
    REQUIRE(bool(found));
    CHECK(found->sums.front().all_finite());
  }
}

TEST_CASE("nvfp4 of tiny weights has a finite second scale and usable block scales") {
  const char* spec =
      R"({"dtype": "fp4", "qscheme": "per_group", "ch_axis": -1, "group_size": 16, "scale_format": "e4m3"})";
  for (const float size : {1e-30f, 1e-36f, 1e-37f, 1e-38f}) {
    CAPTURE(size);
    std::vector<float> x = normal_values(kRows * kColumns, 3, 0, 1);
    for (float& v : x) v *= size;
    const MemoryModel model = session_limits_model_of(StorageDtype::F32, x);
    auto found = run(model, "compressed-tensors", spec, 1 << 20);
    REQUIRE(bool(found));
    const kernels::ErrorSums& sums = found->sums.front();
    CHECK(sums.all_finite());
    CHECK(sums.noise < 0.02 * sums.signal);
  }
}

TEST_CASE("GGUF types: blocks that llama.cpp's validation refuses are refused here, with the largest element named") {
  for (const GgmlTypeInfo& type : kGgmlTypes) {
    if (!type.can_quantize() || type.type == GgmlType::f32) continue;
    CAPTURE(type.name);
    const float large = type.type == GgmlType::bf16 ? 3.4e38f : 1e12f;
    const std::vector<float> x = weights_with({{300, 0.9f * large}, {260, -large}, {9000, 0.95f * large}});
    TensorTask task;
    task.name = "l.weight";
    task.layout = ggml_layout({kRows, kColumns}, StorageDtype::F32, type.type, "l.weight");
    task.components = {{0, 0}};
    const auto refused = [&](uint64_t bytes) -> Error {
      set_tiles(task, {bytes, bytes});
      TensorSession session(task);
      for (uint64_t tile = 0; tile < session.task().tiles; ++tile) {
        for (const TileRead& read : session.reads(tile))
          std::memcpy(read.pointer, reinterpret_cast<const uint8_t*>(x.data()) + read.begin, read.row_bytes);
        auto result = session.run(tile);
        if (!result) return result.error();
        for (const kernels::ErrorSums& sums : result->sums) CHECK(sums.all_finite());
      }
      return {};
    };
    if (type.type == GgmlType::mxfp4) {
      CHECK(refused(1).message.empty());  // its exponents reach as far as float32
      continue;
    }
    const bool is_single = type.block == 1 || type.type == GgmlType::nvfp4;  // whose scales saturate
    for (const uint64_t bytes : {uint64_t{1}, uint64_t{1} << 20}) {
      const Error error = refused(bytes);
      check_refused(error, ErrorCode::value_overflow,
                    is_single ? "is beyond " : "needs a scale beyond float16 in " + std::string(type.name));
      // In blocks of 32 elements 256 to 287 share one; of 256 elements 256 to 511.
      CHECK(error.message.find("at element 260 (row 1, column 4)") != std::string::npos);
    }
    if (type.block > 1) {  // codes of an algorithm
      std::vector<uint8_t> blocks(type.bytes_of(x.size()));
      kernels::quantize_blocks(type.type, x.data(), kRows, kColumns, nullptr, blocks.data());
      const auto stored = store_blocks(task, blocks, x);
      REQUIRE(!stored);
      CHECK(stored.error().code == ErrorCode::value_overflow);
      CHECK(stored.error().message.find("is beyond what " + std::string(type.name)) != std::string::npos);
    }
    task.non_finite = NonFinite::saturate;
    CHECK(refused(1).message.empty());
  }
}

TEST_CASE("a tensor that an algorithm changes and that keeps its dtype is refused, too") {
  TensorTask task;
  task.name = "norm.weight";
  task.is_copy = true;
  task.layout.edit([](WeightLayout& own) {
    own.components = {{Role::codes, "norm.weight", StorageDtype::F16, {2}, 4}};
  });
  task.components = {{0, 0}};
  CHECK(bool(store_modified(task, std::vector<float>{1, 65504}, nullptr, {})));
  const auto refused = store_modified(task, std::vector<float>{1, 65520}, nullptr, {});
  REQUIRE(!refused);
  CHECK(refused.error().code == ErrorCode::value_overflow);
  CHECK(refused.error().message.find("65520 at element 1") != std::string::npos);
}
