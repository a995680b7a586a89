// Quantized checkpoints that are not what they say: each is an error that names the tensor or the place in config.json.
#include <string>

#include "pipeline/quantized_model.h"

using namespace wasmquant;
using namespace wasmquant::testing;

namespace {

struct HostileSourcesCase {
  std::string what;
  std::vector<RawTensor> tensors;
  std::string config;
  ErrorCode code;
  std::string where;
};

constexpr auto U8 = StorageDtype::U8, I8 = StorageDtype::I8, U32 = StorageDtype::U32, F32 = StorageDtype::F32,
               F8 = StorageDtype::F8_E4M3;

std::string hostile_sources_config_of(const std::string& method) {
  return R"({"quantization_config":{"quant_method":")" + method + "\"}}";
}
std::string mlx_of(const std::string& quantization) { return R"({"quantization":)" + quantization + "}"; }

RawTensor state(std::string json, const std::string& layer = "a") {
  const uint64_t bytes = json.size();
  return {layer + ".weight.quant_state.bitsandbytes__nf4", U8, {bytes}, std::move(json)};
}
/// NF4 of 64 elements, [2, 32], whose JSON is `json`.
std::vector<RawTensor> nf4(const std::string& json) {
  return {{"a.weight", U8, {32, 1}}, {"a.weight.absmax", F32, {1}}, {"a.weight.quant_map", F32, {16}}, state(json)};
}
std::vector<RawTensor> with(std::vector<RawTensor> tensors, size_t index, StorageDtype dtype,
                            std::vector<uint64_t> shape) {
  tensors[index].dtype = dtype;
  tensors[index].shape = std::move(shape);
  return tensors;
}
const std::string kNf4 = R"({"quant_type":"nf4","blocksize":64,"dtype":"bfloat16","shape":[2,32]})";
const std::vector<RawTensor> kAffine = {
    {"a.weight", U32, {2, 8}}, {"a.scales", F32, {2, 1}}, {"a.biases", F32, {2, 1}}};
const std::vector<RawTensor> kExperts = {{"m.down_proj_blocks", U8, {2, 4, 1, 16}},
                                         {"m.down_proj_scales", U8, {2, 4, 1}}};
const std::vector<RawTensor> kNvfp4 = {
    {"a.weight", U8, {2, 16}}, {"a.weight_scale", F8, {2, 2}}, {"a.weight_scale_2", F32, {}}};

std::string words_of(const std::string& arguments) {
  return R"({"quantization_config":{"quant_method":"compressed-tensors","config_groups":{"group_0":{"targets":["Linear"],)"
         R"("weights":{)" +
         arguments + "}}}}}";
}
std::string shape_bytes(uint64_t rows, uint64_t columns) {
  const uint64_t shape[] = {rows, columns};
  return {reinterpret_cast<const char*>(shape), sizeof shape};
}

std::vector<RawTensor> and_also(std::vector<RawTensor> tensors, RawTensor more) {
  tensors.push_back(std::move(more));
  return tensors;
}
std::vector<RawTensor> without(std::vector<RawTensor> tensors, size_t index) {
  tensors.erase(tensors.begin() + static_cast<ptrdiff_t>(index));
  return tensors;
}

}  // namespace

TEST_CASE("hostile sources: shapes, widths and JSON that do not go together are errors") {
  using enum ErrorCode;
  const std::string affine = mlx_of(R"({"group_size":64,"bits":4})"), bnb = hostile_sources_config_of("bitsandbytes"),
                    nvidia = hostile_sources_config_of("modelopt"), experts = hostile_sources_config_of("mxfp4");
  const std::vector<HostileSourcesCase> cases = {
      {"blocks of 8 bytes", with(kExperts, 0, U8, {2, 4, 1, 8}), experts, shape_mismatch, "m.down_proj_blocks"},
      {"blocks of three axes", with(kExperts, 0, U8, {2, 4, 16}), experts, shape_mismatch, "m.down_proj"},
      {"blocks of another dtype", with(kExperts, 0, I8, {2, 4, 1, 16}), experts, shape_mismatch, "m.down_proj_blocks"},
      {"a scale too few", with(kExperts, 1, U8, {2, 3, 1}), experts, shape_mismatch, "m.down_proj_scales"},
      {"no columns", with(with(kExperts, 0, U8, {2, 4, 0, 16}), 1, U8, {2, 4, 0}), experts, shape_mismatch,
       "m.down_proj"},

      {"words of another width", with(kAffine, 0, U32, {2, 7}), affine, shape_mismatch, "a.weight"},
      {"words of two axes, scales of one", with(kAffine, 1, F32, {2}), affine, shape_mismatch, "a.weight"},
      {"groups that do not fit their width", with(kAffine, 1, F32, {2, 2}), affine, shape_mismatch, "a.weight"},
      {"biases of another shape", with(kAffine, 2, F32, {1, 2}), affine, shape_mismatch, "a.biases"},
      {"biases that are codes", with(kAffine, 2, I8, {2, 1}), affine, shape_mismatch, "a.biases"},
      {"no biases", without(kAffine, 2), affine, tensor_missing, "a.biases"},
      {"no groups", with(with(kAffine, 0, U32, {2, 0}), 1, F32, {2, 0}), affine, shape_mismatch, "a"},
      {"7 bits", kAffine, mlx_of(R"({"group_size":64,"bits":7})"), format_unsupported, "/quantization"},
      {"groups of 48", kAffine, mlx_of(R"({"group_size":48,"bits":4})"), format_unsupported, "/quantization"},
      {"negative bits", kAffine, mlx_of(R"({"group_size":64,"bits":-4})"), format_unsupported, "/quantization"},
      {"another mode", kAffine, mlx_of(R"({"group_size":64,"bits":4,"mode":"nf4"})"), format_unsupported,
       "/quantization"},
      {"mxfp4 in groups of 64", kAffine, mlx_of(R"({"group_size":64,"bits":4,"mode":"mxfp4"})"), format_unsupported,
       "/quantization"},
      {"a module's own width", kAffine, mlx_of(R"({"group_size":64,"bits":4,"a":{"group_size":64,"bits":9}})"),
       format_unsupported, "/quantization/a"},

      {"state that is no JSON", nf4("{"), bnb, file_invalid, "a.weight.quant_state.bitsandbytes__nf4"},
      {"no shape", nf4(R"({"blocksize":64})"), bnb, shape_mismatch, "a.weight"},
      {"negative shape", nf4(R"({"blocksize":64,"shape":[-2,-32]})"), bnb, shape_mismatch, "a.weight"},
      {"no elements", nf4(R"({"blocksize":64,"shape":[0,32]})"), bnb, shape_mismatch, "a.weight"},
      {"too many elements", nf4(R"({"blocksize":64,"shape":[2,34]})"), bnb, shape_mismatch, "a.weight"},
      {"more elements than numbers go", nf4(R"({"blocksize":64,"shape":[4294967296,4294967296,64]})"), bnb,
       shape_mismatch, "a.weight"},
      {"blocks of nothing", nf4(R"({"blocksize":0,"shape":[2,32]})"), bnb, shape_mismatch, "a.weight"},
      {"blocks of an odd number", nf4(R"({"blocksize":63,"shape":[2,32]})"), bnb, shape_mismatch, "a.weight"},
      {"blocks without end", nf4(R"({"blocksize":9223372036854775806,"shape":[2,32]})"), bnb, shape_mismatch,
       "a.weight"},
      {"other blocks", nf4(R"({"blocksize":32,"shape":[2,32]})"), bnb, shape_mismatch, "a.weight.absmax"},
      {"a table of 8", with(nf4(kNf4), 2, F32, {8}), bnb, shape_mismatch, "a.weight.quant_map"},
      {"no table", without(nf4(kNf4), 2), bnb, tensor_missing, "a.weight.quant_map"},
      {"scales in bytes without their scales", with(nf4(kNf4), 1, U8, {1}), bnb, shape_mismatch, "a.weight.absmax"},
      {"scales of scales that JSON does not know", and_also(nf4(kNf4), {"a.weight.nested_absmax", F32, {1}}), bnb,
       file_invalid, "a.weight.quant_state.bitsandbytes__nf4"},
      {"int8 in a GPU's order",
       {{"a.weight", I8, {2, 4}}, {"a.SCB", F32, {2}}, {"a.weight_format", U8, {}, "\x02"}},
       bnb,
       dtype_unsupported,
       "a.weight_format"},
      {"int8 with a scale too many", {{"a.weight", I8, {2, 4}}, {"a.SCB", F32, {3}}}, bnb, shape_mismatch, "a.SCB"},

      {"NVFP4 without its second scale", without(kNvfp4, 2), nvidia, dtype_unsupported, "a.weight_scale"},
      {"NVFP4 with two second scales", with(kNvfp4, 2, F32, {2}), nvidia, dtype_unsupported, "a.weight_scale"},
      {"NVFP4 with a scale too few", with(kNvfp4, 1, F8, {2, 1}), nvidia, dtype_unsupported, "a.weight_scale"},
      {"NVFP4 of a vector", with(with(kNvfp4, 0, U8, {}), 1, F8, {}), nvidia, dtype_unsupported, "a.weight_scale"},
      {"two scales for FP8", with(with(kNvfp4, 0, F8, {2, 32}), 1, F32, {}), nvidia, dtype_unsupported,
       "a.weight_scale"},
      {"factors of another length", and_also(kNvfp4, {"a.pre_quant_scale", F32, {31}}), nvidia, dtype_unsupported,
       "a.weight_scale"},
      {"factors that are codes", and_also(kNvfp4, {"a.pre_quant_scale", F8, {32}}), nvidia, dtype_unsupported,
       "a.weight_scale"},
      {"a low-rank branch", and_also(kNvfp4, {"a.svdquant_lora_a", F32, {4, 32}}), nvidia, dtype_unsupported,
       "a.svdquant_lora_a"},
      {"int4 under two scales", with(kNvfp4, 1, F32, {4, 1}), nvidia, dtype_unsupported, "a.weight_scale"},
      {"ComfyUI's order of scales", and_also(kNvfp4, {"a.comfy_quant", U8, {2}, "{}"}), "", dtype_unsupported,
       "a.weight_scale"},
      {"an order of other columns than the words have",
       {{"a.weight_packed", StorageDtype::I32, {8, 2}},
        {"a.weight_scale", F32, {8, 1}},
        {"a.weight_shape", StorageDtype::I64, {2}, shape_bytes(8, 16)},
        {"a.weight_g_idx", StorageDtype::I32, {17}}},
       words_of(R"("num_bits":4,"strategy":"channel")"),
       shape_mismatch,
       "a.weight_g_idx"},
      {"words whose length nothing says",
       {{"a.weight_packed", StorageDtype::I32, {8, 2}}, {"a.weight_scale", F32, {8, 1}}},
       words_of(R"("num_bits":4,"strategy":"channel")"),
       tensor_missing,
       "a.weight_shape"},
      {"GPTQ's words, and no word of GPTQ",
       {{"a.qweight", StorageDtype::I32, {4, 8}}, {"a.scales", F32, {1, 8}}},
       "{}",
       format_unknown,
       "a.qweight"},
      {"packed words, and no block",
       {{"a.weight_packed", StorageDtype::I32, {8, 4}}},
       "",
       format_unknown,
       "a.weight_packed"},
      {"an unknown tool in text_config", kNvfp4, R"({"text_config":{"quantization_config":{"quant_method":"zzz"}}})",
       format_unknown, "/text_config/quantization_config/quant_method"},
      {"an unknown tool", kNvfp4, hostile_sources_config_of("zzz"), format_unknown,
       "/quantization_config/quant_method"},
      {"a block without a tool", kNvfp4, R"({"quantization_config":{"bits":4}})", format_unknown,
       "/quantization_config/quant_method"},
  };
  for (const HostileSourcesCase& each : cases) {
    CAPTURE(each.what);
    const auto original = original_model(model_of(each.tensors, each.config).index);
    CHECK_FALSE(bool(original));
    if (original) continue;
    const Error& error = original.error();
    CHECK_MESSAGE(error.code == each.code, error.message);
    CHECK_MESSAGE(error.where == each.where, error.message);
    CHECK_FALSE(error.message.empty());
  }
}

TEST_CASE("hostile sources: missing bytes are an error, and bytes that were not requested are refused") {
  QuantizedModel model = model_of(nf4(kNf4), hostile_sources_config_of("bitsandbytes"));
  CHECK(bool(original_model(model.index)));
  ModelIndex unread = model.memory.index();
  unread.set_sibling_file("config.json", hostile_sources_config_of("bitsandbytes"));
  const auto original = original_model(unread);
  REQUIRE_FALSE(bool(original));
  CHECK_FALSE(bool(unread.set_inline_bytes(0, "too few")));
  CHECK_FALSE(bool(unread.set_inline_bytes(99, "")));
  const List<uint32_t> wanted = unread.inline_tensors();
  REQUIRE(wanted.size() == 1);
  CHECK_FALSE(bool(unread.set_inline_bytes(wanted[0], "too few")));
  // A weight has no bytes for this, whatever it is called.
  const ModelIndex large =
      model_of({{"a.weight.quant_state.bitsandbytes__nf4", U8, {1 << 20}}}, hostile_sources_config_of("bitsandbytes"))
          .index;
  CHECK(large.inline_tensors().empty());
}

TEST_CASE("hostile sources: hf_quant_config.json is enough, and has to be JSON") {
  const std::vector<RawTensor> int8 = {{"a.weight", I8, {2, 4}}, {"a.weight_scale", F32, {2}}};
  const auto plain = original_model(model_of(int8, "{}").index);
  REQUIRE(bool(plain));
  CHECK(*plain == nullptr);  // nobody says that these are codes
  const auto decoded = original_model(model_of(int8, "{}", R"({"quantization":{"quant_algo":"W8A16"}})").index);
  REQUIRE(bool(decoded));
  CHECK((*decoded)->find("a.weight")->quantized != nullptr);
  CHECK_FALSE(bool(original_model(model_of(int8, "{}", "{").index)));
}
