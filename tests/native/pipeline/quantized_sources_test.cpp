// Checkpoints of other tools: decoded, they are what the tools' own code makes of them, to the last bit, whatever the
// tiles (tests/files/quantized/README.md).
#include "pipeline/quantized_model.h"

using namespace wasmquant;
using namespace wasmquant::testing;

namespace {

/// Values that the tool stored, widened.
std::vector<float> quantized_sources_expected_values(const MemoryModel& memory, const ModelTensor& tensor) {
  const uint8_t* const bytes = memory.files[tensor.file].data() + tensor.stored.begin;
  const uint64_t count = (tensor.stored.end - tensor.stored.begin) * 8 / info_of(tensor.stored.dtype).bits;
  std::vector<float> values(count);
  if (tensor.stored.dtype == StorageDtype::F32)
    std::memcpy(values.data(), bytes, count * sizeof(float));
  else
    kernels::widen_bf16({reinterpret_cast<const uint16_t*>(bytes), count}, values.data());
  return values;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  // -0 of codes whose sign is stored apart is 0 in some tools.
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](float x, float y) { return x == y; });
}

}  // namespace

TEST_CASE("quantized sources: each weight decodes to its tool's own values, with any tiles") {
  const struct {
    const char* folder;
    size_t weights;
  } kTools[] = {{"gpt_oss", 2}, {"modelopt", 9}, {"mlx", 14}, {"bitsandbytes", 10}, {"compressed_tensors", 8}};
  for (const auto& tool : kTools) {
    CAPTURE(tool.folder);
    const QuantizedModel model = open_folder(std::string("quantized/") + tool.folder);
    const auto original = original_model(model.index);
    REQUIRE(bool(original));
    REQUIRE(*original != nullptr);
    MemoryModel values;
    values.names.push_back("values.safetensors");
    values.files.push_back(
        test_files::file_bytes(std::string("files/quantized/") + tool.folder + "/values.safetensors"));
    const ModelIndex tools_values = values.index();
    size_t decoded = 0;
    for (const ModelTensor& tensor : (*original)->tensors()) {
      if (!tensor.quantized) continue;
      CAPTURE(tensor.stored.name);
      ++decoded;
      CHECK(tensor.stored.dtype == StorageDtype::F32);
      const ModelTensor* const expected = tools_values.find(tensor.stored.name);
      if (expected == nullptr) {  // too large to be stored: its last row is
        const ModelTensor* const row = tools_values.find(tensor.layer + ".last_row");
        REQUIRE(row != nullptr);
        const std::vector<float> last = quantized_sources_expected_values(values, *row),
                                 all = decoded_values(model, tensor, 1, false);
        CHECK(same_bits({all.end() - static_cast<ptrdiff_t>(last.size()), all.end()}, last));
        continue;
      }
      CHECK(expected->stored.shape == tensor.stored.shape);
      const std::vector<float> want = quantized_sources_expected_values(values, *expected);
      for (const uint64_t tile_bytes : {1u, 600u, 1u << 20})
        for (const bool reverse : {false, true}) {
          CAPTURE(tile_bytes);
          CHECK(same_bits(decoded_values(model, tensor, tile_bytes, reverse), want));
        }
    }
    CHECK(decoded == tool.weights);
  }
}

TEST_CASE("quantized sources: tensors that belong to no weight are copied, scales and the like are not") {
  const QuantizedModel model = open_folder("quantized/gpt_oss");
  const auto original = original_model(model.index);
  REQUIRE(bool(original));
  for (const char* kept : {"mlp.experts.gate_up_proj_bias", "mlp.router.bias", "self_attn.sinks"})
    CHECK((*original)->find(std::string("model.layers.0.") + kept) != nullptr);
  for (const char* part : {"gate_up_proj_blocks", "gate_up_proj_scales"})
    CHECK((*original)->find(std::string("model.layers.0.mlp.experts.") + part) == nullptr);
  CHECK((*original)->find("model.layers.0.mlp.experts.gate_up_proj")->stored.shape == std::vector<uint64_t>{3, 32, 64});
  const auto nvidia = original_model(open_folder("quantized/modelopt").index);
  REQUIRE(bool(nvidia));
  for (const ModelTensor& tensor : (*nvidia)->tensors()) {
    const std::string& name = tensor.stored.name;
    const bool is_of_cache = name.ends_with(".k_scale") || name.ends_with(".v_scale");  // of no weight
    CHECK((is_of_cache || (name.ends_with(".weight") && name.find("scale") == std::string::npos)));
  }
}

TEST_CASE("quantized sources: compressed-tensors models keep tensors that are not weights") {
  const auto original = original_model(model_of({{"a.weight", StorageDtype::I8, {8, 16}},
                                                 {"a.weight_scale", StorageDtype::F32, {8, 1}},
                                                 {"a.input_scale", StorageDtype::F32, {1}},
                                                 {"a.A_log", StorageDtype::F32, {8}},
                                                 {"sinks", StorageDtype::F32, {4}}},
                                                R"({"quantization_config":{"quant_method":"compressed-tensors"}})")
                                           .index);
  REQUIRE(bool(original));
  REQUIRE((*original)->tensors().size() == 3);
  CHECK((*original)->find("a.weight")->quantized != nullptr);
  CHECK((*original)->find("a.A_log") != nullptr);
  CHECK((*original)->find("sinks") != nullptr);
}

TEST_CASE("quantized sources: blocks as published checkpoints have them") {
  const std::string one("\0\0\x80\x3f", 4);
  const std::vector<RawTensor> fp8 = {{"a.weight", StorageDtype::F8_E4M3, {2, 16}, std::string(32, '\x40')},
                                      {"a.weight_scale", StorageDtype::F32, {2, 1}, one + one},
                                      {"a.input_scale_ub", StorageDtype::F32, {1}}};
  const std::vector<RawTensor> tensor_wide = {fp8[0], {"a.weight_scale", StorageDtype::F32, {}, one}};
  const std::vector<RawTensor> fp4 = {{"a.weight", StorageDtype::U8, {2, 32}, std::string(64, '\x44')},
                                      {"a.weight_scale", StorageDtype::U8, {2, 2}, std::string(4, '\x7f')}};
  const struct {
    std::vector<RawTensor> tensors;
    const char* config;
  } kBlocks[] = {
      {fp8, R"({"quantization_config":{"quant_method":"fbgemm_fp8","activation_scale_ub":1200.0}})"},
      {tensor_wide,
       R"({"quantization_config":{"quant_algo":"FP8","producer":{"name":"modelopt"},"config_groups":{}}})"},
      {{fp8[0], fp8[1]}, R"({"text_config":{"quantization_config":{"quant_method":"compressed-tensors"}}})"},
      {fp4, R"({"quantization_config":{"quant_method":"quark","exclude":["re:^(?!a$).*$"],"global_quant_config":
        {"weight":{"dtype":"fp4","qscheme":"per_group","group_size":32,"ch_axis":-1,"scale_format":"e8m0"}}}})"},
  };
  for (const auto& block : kBlocks) {
    CAPTURE(std::string(block.config));
    const QuantizedModel model = model_of(block.tensors, block.config);
    const auto original = original_model(model.index);
    REQUIRE(bool(original));
    REQUIRE(*original != nullptr);
    REQUIRE((*original)->tensors().size() == 1);
    const ModelTensor& weight = (*original)->tensors()[0];
    CHECK(weight.stored.name == "a.weight");
    for (const float value : decoded_values(model, weight, 1 << 10, false)) CHECK(value == 2.0f);
  }
}

TEST_CASE("quantized sources: NVFP4 without any config, packed or F4, under a scale that multiplies or divides") {
  const std::string one("\0\0\x80\x3f", 4), half("\0\0\0\x3f", 4);
  const std::string scales(2, '\x38'), codes(16, '\x21');  // E4M3 1; codes 1, 2: 0.5, 1
  for (const bool is_packed : {true, false})
    for (const bool divides : {true, false}) {
      CAPTURE(is_packed);
      CAPTURE(divides);
      const QuantizedModel model =
          model_of({{"a.weight", is_packed ? StorageDtype::U8 : StorageDtype::F4, {1, is_packed ? 16u : 32u}, codes},
                    {"a.weight_scale", StorageDtype::F8_E4M3, {1, 2}, scales},
                    {divides ? "a.weight_global_scale" : "a.weight_scale_2", StorageDtype::F32, {1}, half}},
                   "");
      const auto original = original_model(model.index);
      REQUIRE(bool(original));
      REQUIRE((*original)->tensors().size() == 1);
      const ModelTensor& tensor = (*original)->tensors().front();
      CHECK(tensor.stored.shape == std::vector<uint64_t>{1, 32});
      const std::vector<float> values = decoded_values(model, tensor, 1, false);
      CHECK(values[0] == (divides ? 1.0f : 0.25f));
      CHECK(values[31] == (divides ? 2.0f : 0.5f));
    }
}
