// quantization_config blocks of model files: compressed-tensors, GPTQ, AWQ, fp8.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "config/resolve/resolve.h"
#include "diagnostics.h"

using namespace wasmquant;

namespace {

Config import_config_of(std::string_view text) {
  auto parsed = config::parse_text(text);
  REQUIRE(static_cast<bool>(parsed));
  return std::move(parsed->config);
}

// "int4 per_group 32 asym" or the rule that leaves the layer as it is.
std::string plan_of(const Config& config, const std::string& layer) {
  const std::vector<uint64_t> shape = {64, 128};
  const Resolved resolved = Resolver(config).resolve(layer + ".weight", shape, true);
  if (resolved.weight.empty()) return std::string(name_of(resolved.reason.rule)) + " " + resolved.reason.where;
  const QuantizationSpec& spec = resolved.weight[0];
  constexpr const char* kSchemes[] = {"tensor", "channel", "group", "block"};
  std::string text = std::string(info_of(spec.dtype).name) + " " + kSchemes[static_cast<int>(spec.qscheme)];
  if (spec.qscheme == QScheme::per_group) text += " " + std::to_string(spec.group_size);
  return text + (spec.symmetric ? "" : " asymmetric") + " " + resolved.reason.where;
}

struct ImportCase {
  std::string text;
  std::string expected;
};

std::string group(const std::string& weights) {
  return R"({"quant_method":"compressed-tensors","config_groups":{"group_0":{"targets":["Linear"],"weights":)" +
         weights + "}}}";
}

}  // namespace

TEST_CASE("compressed-tensors: targets, ignore, precedence") {
  const Config config = import_config_of(R"({"architectures":["X"],"quantization_config":{
    "quant_method":"compressed-tensors","format":"pack-quantized","quantization_status":"compressed","version":"0.17.1",
    "global_compression_ratio":null,"kv_cache_scheme":null,"sparsity_config":{},"transform_config":{},
    "config_groups":{
      "group_0":{"targets":["Linear"],"weights":{"num_bits":4,"type":"int","symmetric":false,"strategy":"group","group_size":32,
        "actorder":null,"block_structure":null,"dynamic":false,"observer":"minmax","observer_kwargs":{}},"input_activations":null,
        "output_activations":null,"format":"pack-quantized"},
      "group_1":{"targets":["re:.*\\.down_proj$","model.layers.0.mlp.up_proj"],"weights":{"num_bits":8,"strategy":"channel"}}},
    "ignore":["lm_head","re:.*gate$"]}})");
  CHECK(plan_of(config, "a.q_proj") == "uint4 group 32 asymmetric /quantization_config/config_groups/group_0/weights");
  CHECK(plan_of(config, "a.down_proj") == "int8 channel /quantization_config/config_groups/group_1/weights");
  CHECK(plan_of(config, "a.down_proj2") ==
        "uint4 group 32 asymmetric /quantization_config/config_groups/group_0/weights");
  CHECK(plan_of(config, "model.layers.0.mlp.up_proj") ==
        "int8 channel /quantization_config/config_groups/group_1/weights");
  CHECK(plan_of(config, "lm_head") == "excluded /quantization_config/ignore/0");
  CHECK(plan_of(config, "mlp.gate") == "excluded /quantization_config/ignore/1");
  CHECK(plan_of(config, "embed_tokens") == "no-config ");
}

TEST_CASE("compressed-tensors: schemes") {
  const ImportCase cases[] = {
      {R"({"num_bits":4,"group_size":128})", "int4 group 128"},
      {R"({"num_bits":8,"group_size":-1})", "int8 channel"},
      {R"({"num_bits":8})", "int8 tensor"},
      {R"({"num_bits":8,"type":"float","strategy":"channel"})", "fp8_e4m3 channel"},
      {R"({"num_bits":8,"type":"float","strategy":"block","block_structure":[128,128]})", "fp8_e4m3 block"},
      {R"({"num_bits":4,"type":"float","strategy":"tensor_group","group_size":16})", "fp4 group 16"},
      {R"({"num_bits":4,"type":"float","strategy":"group","group_size":32,"scale_dtype":"torch.uint8"})",
       "fp4 group 32"},
  };
  for (const ImportCase& c : cases) {
    CAPTURE(c.text);
    CHECK(plan_of(import_config_of(group(c.text)), "x") == c.expected + " /config_groups/group_0/weights");
  }
  const Config nvfp4 =
      import_config_of(group(R"({"num_bits":4,"type":"float","strategy":"tensor_group","group_size":16})"));
  CHECK(nvfp4.layer_type[0].second.weight.front().scale_format == ScaleFormat::e4m3);

  const std::string w = "/config_groups/group_0/weights";
  const ImportCase wrong[] = {
      {group(R"({"num_bits":9})"), ""},
      {group(R"({"num_bits":17})"), "error not-implemented " + w + "/num_bits"},
      {group(R"({"num_bits":6,"type":"float"})"), "error not-implemented " + w + "/num_bits"},
      {group(R"({"num_bits":8,"type":"fixed"})"), "error value-unknown " + w + "/type"},
      {group(R"({"bits":8})"), "error key-unknown " + w + "/bits"},
      {group(R"({"num_bits":8,"strategy":"group"})"), "error value-invalid " + w + "/group_size"},
      {group(R"({"num_bits":8,"strategy":"tensor","group_size":32})"), "error value-invalid " + w + "/group_size"},
      {group(R"({"num_bits":8,"strategy":"block"})"), "error value-invalid " + w + "/block_structure"},
      {group(R"({"num_bits":8,"strategy":"block","block_structure":[0,-1]})"),
       "error value-invalid " + w + "/block_structure"},
      {group(R"({"num_bits":8,"type":"float","symmetric":false})"), "error value-invalid " + w + "/symmetric"},
      {group(R"({"num_bits":8,"strategy":"attn_head"})"), "error not-implemented " + w + "/strategy"},
      {group(R"({"num_bits":8,"actorder":"group"})"), "warning not-applied " + w + "/actorder"},
      {group(R"({"num_bits":8,"observer":"mse"})"), "warning not-applied " + w + "/observer"},
      {R"({"quant_method":"compressed-tensors"})", "error key-missing "},
      {R"({"config_groups":{"group_0":{"targets":["re:("],"weights":{}}}})",
       "error pattern-invalid /config_groups/group_0/targets/0"},
      {R"({"config_groups":{"group_0":{"weights":{}}}})", "error key-missing /config_groups/group_0"},
      {R"({"config_groups":{"group_0":{"targets":["Linear"],"weights":{}}},"kv_cache_scheme":{"num_bits":8}})", ""},
      {R"({"config_groups":{"group_0":{"targets":["Linear"],"weights":{}}},"something":1})",
       "warning key-unknown /something"},
  };
  for (const ImportCase& c : wrong) {
    CAPTURE(c.text);
    CHECK(problems_of(c.text) == c.expected);
  }
}

TEST_CASE("gptq: bits, groups, dynamic") {
  const Config config = import_config_of(R"({"quant_method":"gptq","bits":4,"group_size":128,"desc_act":true,"sym":true,
    "damp_percent":0.01,"checkpoint_format":"gptq","dataset":"c4","model_seqlen":2048,
    "dynamic":{"-:.*\\.gate$":{},"+:.*\\.down_proj":{"bits":8,"group_size":32},".*\\.up_proj":{"sym":false}}})");
  CHECK(plan_of(config, "m.q_proj") == "int4 group 128 /bits");
  CHECK(plan_of(config, "m.down_proj") == "int8 group 32 /dynamic/+:.*\\.down_proj/bits");
  CHECK(plan_of(config, "m.up_proj") == "uint4 group 128 asymmetric /dynamic/.*\\.up_proj/bits");
  CHECK(plan_of(config, "m.gate") == "excluded /dynamic/-:.*\\.gate$");
  CHECK(plan_of(config, "lm_head") == "excluded /lm_head");
  CHECK(plan_of(import_config_of(R"({"quant_method":"gptq","bits":8,"group_size":-1,"lm_head":true})"), "lm_head") ==
        "int8 channel /bits");
  const ImportCase wrong[] = {
      {R"({"quant_method":"gptq","bits":1})", "error value-invalid /bits\nwarning not-applied "},
      {R"({"quant_method":"gptq","group_size":0})", "error value-invalid /group_size\nwarning not-applied "},
      {R"({"quant_method":"gptq","checkpoint_format":"gptq_v3"})",
       "error value-unknown /checkpoint_format\nwarning not-applied \nnote no-effect "},
      {R"({"quant_method":"gptq","dynamic":{"-:(":{}}})", "error pattern-invalid /dynamic/-:(\nwarning not-applied "},
      {R"({"quant_method":"gptq","dynamic":{"x":{"bits":99}}})",
       "error value-invalid /dynamic/x/bits\nwarning not-applied "},
      {R"({"bits":4,"desc_act":false,"sym":true,"group_size":64})", "warning not-applied "},
  };
  for (const ImportCase& c : wrong) {
    CAPTURE(c.text);
    CHECK(problems_of(c.text) == c.expected);
  }
}

TEST_CASE("awq and fp8") {
  const Config awq = import_config_of(
      R"({"quant_method":"awq","bits":4,"group_size":128,"zero_point":true,"version":"gemm","modules_to_not_convert":["visual"]})");
  CHECK(plan_of(awq, "m.q_proj") == "uint4 group 128 asymmetric /bits");
  CHECK(plan_of(awq, "m.visual.x") == "excluded /modules_to_not_convert/0");
  CHECK(plan_of(import_config_of(R"({"w_bit":4,"q_group_size":64,"zero_point":false})"), "m") == "int4 group 64 /bits");
  CHECK(problems_of(R"({"quant_method":"awq","bits":8})") == "error value-invalid /bits");

  const Config block = import_config_of(
      R"({"quant_method":"fp8","activation_scheme":"dynamic","fmt":"e4m3","weight_block_size":[128,128],"modules_to_not_convert":["lm_head"]})");
  CHECK(plan_of(block, "m.q") == "fp8_e4m3 block /weight_block_size");
  CHECK(plan_of(block, "a.lm_head") == "excluded /modules_to_not_convert/0");
  CHECK(block.global.weight.front().block_rows == 128);
  CHECK(block.global.input_tensors.front().is_dynamic);
  CHECK(plan_of(import_config_of(R"({"quant_method":"fp8","activation_scheme":null,"ignored_layers":["x"]})"), "y") ==
        "fp8_e4m3 tensor /weight_block_size");
  CHECK(problems_of(R"({"quant_method":"fp8","weight_block_size":[128]})") == "error value-invalid /weight_block_size");
  CHECK(problems_of(R"({"quant_method":"fp8","activation_scheme":"static"})").empty());
  CHECK(problems_of(R"({"quant_method":"bitsandbytes"})") == "error value-unknown /quant_method");
}
