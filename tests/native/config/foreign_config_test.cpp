// Configs and recipes of other tools: one error that says whose they are.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "config/config_text.h"
#include "config/resolve/resolve.h"
#include "diagnostics.h"

using namespace wasmquant;

TEST_CASE("foreign configs: each is one error at the key that identifies it") {
  const struct {
    const char* text;
    const char* expected;
    const char* names;
  } kForeign[] = {
      {R"({"producer":{"name":"modelopt"},"quantization":{"quant_algo":"FP8"}})", "error config-foreign /quantization",
       "ModelOpt"},
      {R"({"quantization_config":{"quant_method":"modelopt","quant_algo":"NVFP4","config_groups":{}}})",
       "error config-foreign /quantization_config/quant_algo", "ModelOpt"},
      {R"({"quant_method":"fp8","quant_algo":"MIXED_PRECISION","weight_block_size":[128,128]})",
       "error config-foreign /quant_algo", "ModelOpt"},
      {R"({"bits":4,"group_size":64,"mode":"affine","a.b":{"bits":8,"group_size":32},"c":false})",
       "error config-foreign ", "MLX"},
      {R"({"quant_stage":{"quant_modifiers":{"GPTQModifier":{}}}})", "error config-foreign ", "llm-compressor"},
      {R"({"default_modifiers":{"AWQModifier":{}}})", "error config-foreign ", "llm-compressor"},
      {R"({"quant_cfg":[],"algorithm":"max"})", "error config-foreign /quant_cfg", "ModelOpt"},
      {R"({"weight_bit_width":4,"weight_quant_format":"int"})", "error config-foreign /weight_bit_width", "Brevitas"},
      {R"({"text_config":{"quantization_config":{"quant_method":"vptq"}}})",
       "error value-unknown /text_config/quantization_config/quant_method", "vptq"},
  };
  for (const auto& foreign : kForeign) {
    CAPTURE(std::string(foreign.text));
    CHECK(problems_of(foreign.text) == foreign.expected);
    const List<Diagnostic> problems = config::check(foreign.text);
    REQUIRE(problems.size() == 1);
    CHECK(problems[0].message.find(foreign.names) != std::string::npos);
    CHECK(!problems[0].hint.empty());
  }
}

TEST_CASE("foreign configs: what a dialect reads is not foreign") {
  for (const char* text : {R"({"bits":4,"group_size":128,"desc_act":false,"sym":true})",
                           R"({"w_bit":4,"q_group_size":128,"zero_point":true})"}) {
    CAPTURE(std::string(text));
    CHECK(problems_of(text).find("error") == std::string::npos);
  }
  CHECK(bool(config::parse_text(R"({"bits":4,"group_size":64})", "awq")));
}

TEST_CASE("fp8: the format's second name, and entries of which one pattern matches") {
  CHECK(problems_of(R"({"quant_method":"fp8","fmt":"float8_e4m3fn"})") == "");
  const auto parsed =
      config::parse_text(R"({"quant_method":"fp8","modules_to_not_convert":["gate","lm_head","absent"]})");
  REQUIRE(bool(parsed));
  Resolver resolver(parsed->config);
  for (const char* weight : {"model.layers.0.gate.weight", "lm_head.weight"}) {
    const std::vector<uint64_t> shape = {64, 128};
    CHECK(resolver.resolve(weight, shape, true).reason.rule == Rule::excluded);
  }
  const List<Diagnostic> unused = resolver.unused_patterns();
  REQUIRE(unused.size() == 1);
  CHECK(unused[0].where == "/modules_to_not_convert/2");
}

TEST_CASE("Quark: expressions that cannot be used are errors") {
  CHECK(problems_of(R"({"global_quant_config":{"weight":{"dtype":"int8"}},"exclude":["lm_head","re:(?<!a).*"]})") ==
        "error pattern-invalid /exclude/1");
  CHECK(problems_of(R"({"layer_quant_config":{"re:(":{"weight":{"dtype":"int8"}}}})") ==
        "error pattern-invalid /layer_quant_config/re:(");
}
