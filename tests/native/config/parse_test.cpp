// Configs and what is said about them: every expected diagnostic by severity, code and JSON pointer, in order.
#include <doctest/doctest.h>

#include <string>
#include <string_view>

#include "config/config_text.h"
#include "config/match/edit_distance.h"
#include "config/parse.h"

using namespace wasmquant;

namespace {

// "error key-unknown /a/b" lines.
std::string summary_of(const List<Diagnostic>& diagnostics) {
  std::string text;
  for (const Diagnostic& d : diagnostics) {
    if (!text.empty()) text += "\n";
    text += std::string(name_of(d.severity)) + " " + std::string(d.code.name()) + " " + d.where;
  }
  return text;
}

std::string parse_weight(const std::string& spec) { return R"({"global_quant_config":{"weight":)" + spec + "}}"; }

struct ParseCase {
  std::string text;
  const char* expected;
};

const std::string kG = "/global_quant_config/weight";

}  // namespace

TEST_CASE("weight specs: what is accepted, refused and noted") {
  const ParseCase cases[] = {
      {R"({"dtype":"int8"})", ""},
      {R"({"dtype":"uint8"})", ""},
      {R"({"dtype":"int4","qscheme":"per_group","group_size":32})", ""},
      {R"({"dtype":"int4","qscheme":"per_group","group_size":-1,"ch_axis":1})", ""},
      {R"({"dtype":"int4","qscheme":"per_channel"})", ""},
      {R"({"dtype":"int3","qscheme":"per_channel","axis":0,"dynamic":false})", ""},
      {R"({"dtype":"int2","symmetric":false,"observer_cls":"PerTensorMinMax"})", ""},
      {R"({"dtype":"int8","observer_cls":"PerChannelMinMaxObserver"})", ""},
      {R"({"dtype":"fp8_e4m3","observer_cls":"PerTensorPercentileObserver"})", ""},
      {R"({"dtype":"int4","qscheme":"per_tensor","observer_cls":"PerTensorMSE"})", ""},
      {R"({"dtype":"uint8","symmetric":true,"observer_cls":"PerChannelPowOf2MinMSEObserver"})", ""},
      {R"({"dtype":"int8","scale_type":"pof2","observer_cls":"PerTensorPowOf2MinMaxObserver"})", ""},
      {R"({"dtype":"fp8_e4m3","scale_type":null,"symmetric":null})", ""},
      {R"({"dtype":"fp8_e4m3","qscheme":"per_group","group_size":32,"scale_format":"float32"})", ""},
      {R"({"dtype":"bfloat16"})", ""},
      {R"({"dtype":"float16","observer_cls":"PlaceholderObserver","is_scale_quant":false})", ""},
      {R"([{"dtype":"int8"}])", ""},
      {R"({"dtype":"uint4","symmetric":false,"zero_point_type":"float32"})", ""},
      {R"({})", "error key-missing {}"},
      {R"({"dtype":null})", "error key-missing {}"},
      {R"({"dtype":8})", "error type-invalid {}/dtype\nerror key-missing {}"},
      {R"("int8")", "error type-invalid {}"},
      {R"({"dtype":"int99"})", "error value-unknown {}/dtype"},
      {R"({"dtype":"uint16"})", "error dtype-unsupported {}/dtype"},
      {R"({"dtype":"int32"})", ""},
      {R"({"dtype":"fp4","observer_cls":"PerBlockMXObserver","qscheme":"per_group","group_size":32,"scale_format":"e8m0"})",
       ""},
      {R"({"dtype":"fp4","qscheme":"per_group","group_size":16,"scale_format":"e4m3"})", ""},
      {R"({"dtype":"fp4","qscheme":"per_group","group_size":16,"scale_type":"float8_e5m3","scale_format":"e5m3"})", ""},
      {R"({"dtype":"fp4","qscheme":"per_group","group_size":16,"scale_type":"float16","scale_format":"e5m3"})",
       "warning key-ignored {}/scale_type"},
      {R"({"dtype":"fp8_e4m3","scale_format":"e4m3"})", "error value-invalid {}/scale_format"},
      {R"({"dtype":"fp6_e3m2","qscheme":"per_group","group_size":32,"scale_calculation_mode":"floor"})",
       "warning key-ignored {}/scale_calculation_mode"},
      {R"({"dtype":"mx","ch_axis":-1,"group_size":32,"mx_element_dtype":"fp4","qscheme":"per_group"})", ""},
      {R"({"dtype":"mx","mx_element_dtype":"int8","scale_calculation_mode":"floor"})", ""},
      {R"({"dtype":"mx"})", "error key-missing {}"},
      {R"({"dtype":"mx","mx_element_dtype":"int4"})", "error value-unknown {}/mx_element_dtype"},
      {R"({"dtype":"mx","mx_element_dtype":"int8","symmetric":false})", "warning key-ignored {}/symmetric"},
      {R"({"dtype":"mx","mx_element_dtype":"fp4","qscheme":"per_tensor"})", "error value-invalid {}/qscheme"},
      {R"({"dtype":"mx","mx_element_dtype":"fp4","scale_format":"float32"})", "error value-invalid {}/scale_format"},
      {R"({"dtype":"mx6","ch_axis":-1,"group_size":32})", ""},
      {R"({"dtype":"mx9"})", ""},
      {R"({"dtype":"mx9","group_size":15})", "error value-invalid {}/group_size"},
      {R"({"dtype":"bfp16","ch_axis":-1,"observer_cls":"PerBlockBFPObserver"})", ""},
      {R"({"dtype":"bfp16","group_size":16})", "error value-invalid {}/group_size"},
      {R"({"dtype":"bfp16","scale_format":"e8m0"})", "warning key-ignored {}/scale_format"},
      {R"({"dtype":"minifloat","exponent_bits":3,"mantissa_bits":4})", ""},
      {R"({"dtype":"minifloat","exponent_bits":8,"mantissa_bits":11})",
       "error value-invalid {}/exponent_bits\nerror value-invalid {}/mantissa_bits"},
      {R"({"dtype":"minifloat"})", "error key-missing {}"},
      {R"({"dtype":"fp4","exponent_bits":2})", "warning key-ignored {}/exponent_bits"},
      {R"({"dtype":"fp8_e5m3","symmetric":false})", "warning key-ignored {}/symmetric"},
      {R"({"dtype":"int8","groupsize":32})", "error key-unknown {}/groupsize"},
      {R"({"dtype":"int4","group_size":32})", "error key-missing {}"},
      {R"({"dtype":"int4","ch_axis":0})", "error key-missing {}"},
      {R"({"dtype":"int4","qscheme":"per_group"})", "error key-missing {}"},
      {R"({"dtype":"int4","qscheme":"per_group","group_size":0})", "error value-invalid {}/group_size"},
      {R"({"dtype":"int4","qscheme":"per_group","group_size":-2})", "error value-invalid {}/group_size"},
      {R"({"dtype":"int4","qscheme":"per_group","group_size":"32"})", "error type-invalid {}/group_size"},
      {R"({"dtype":"int4","qscheme":"per_group","group_size":32.5})", "error type-invalid {}/group_size"},
      {R"({"dtype":"int4","qscheme":"per_groups","group_size":32})", "error value-unknown {}/qscheme"},
      {R"({"dtype":"int8","qscheme":"per_block","block_size":[128,128]})", ""},
      {R"({"dtype":"fp8_e4m3","qscheme":"per_block"})", "error key-missing {}"},
      {R"({"dtype":"fp8_e4m3","qscheme":"per_block","block_size":[128,0]})", "error value-invalid {}/block_size"},
      {R"({"dtype":"fp8_e4m3","qscheme":"per_block","block_size":128})", "error type-invalid {}/block_size"},
      {R"({"dtype":"int8","qscheme":"per_channel","ch_axis":9})", "error value-invalid {}/ch_axis"},
      {R"({"dtype":"int8","qscheme":"per_channel","group_size":32})", "warning key-ignored {}/group_size"},
      {R"({"dtype":"int8","qscheme":"per_tensor","ch_axis":0})", "warning key-ignored {}/ch_axis"},
      {R"({"dtype":"int8","qscheme":"per_tensor","observer_cls":"PerGroupMinMaxObserver"})",
       "error observer-mismatch {}/observer_cls"},
      {R"({"dtype":"int8","observer_cls":"LSQObserver"})", ""},
      {R"({"dtype":"int8","observer_cls":"PerTensorHistogramObserverPro"})", ""},
      {R"({"dtype":"int8","observer_cls":"PerTensorHistogramPro"})", ""},
      {R"({"dtype":"int8","qscheme":"per_channel","observer_cls":"LSQ"})", ""},
      {R"({"dtype":"int8","observer_cls":"TQTKLJ"})", ""},
      {R"({"dtype":"int4","observer_cls":"PerGroupMSE","group_size":32})", ""},
      {R"({"dtype":"fp8_e4m3","observer_cls":"PerChannelMSEObserver"})", ""},
      {R"({"dtype":"uint4","observer_cls":"HQQ","group_size":32,"zero_point_type":"float32"})", ""},
      {R"({"dtype":"fp8_e4m3","qscheme":"per_channel","observer_cls":"HQQ"})",
       "error observer-mismatch {}/observer_cls"},
      {R"({"dtype":"mx","mx_element_dtype":"int8","observer_cls":"PerBlockMXDiffs"})", ""},
      {R"({"dtype":"int8","observer_cls":"PerTensorEntropy"})", ""},
      {R"({"dtype":"fp4","observer_cls":"TQTObserver"})", "error observer-mismatch {}/observer_cls"},
      {R"({"dtype":"int8","qscheme":"per_group","group_size":32,"observer_cls":"LSQ"})",
       "error observer-mismatch {}/observer_cls"},
      {R"({"dtype":"int8","qscheme":"per_channel","observer_cls":"PerTensorPercentileObserver"})",
       "error observer-mismatch {}/observer_cls"},
      {R"({"dtype":"fp8_e4m3","observer_cls":"PerTensorPowOf2MinMaxObserver"})",
       "error observer-mismatch {}/observer_cls"},
      {R"({"dtype":"int8","observer_cls":"PlaceholderObserver"})", "error observer-mismatch {}/observer_cls"},
      {R"({"dtype":"int8","observer_cls":"PerTensorMinMaxObsrever"})", "error value-unknown {}/observer_cls"},
      {R"({"dtype":"fp8_e4m3","symmetric":false})", "warning key-ignored {}/symmetric"},
      {R"({"dtype":"fp8_e5m2","zero_point_type":"float32"})", "warning key-ignored {}/zero_point_type"},
      {R"({"dtype":"fp8_e5m2","zero_point_type":"int32"})", "warning key-ignored {}/zero_point_type"},
      {R"({"dtype":"fp8_e5m2","round_method":"floor"})", "warning key-ignored {}/round_method"},
      {R"({"dtype":"uint8","symmetric":true})", "warning symmetric-unsigned {}/symmetric"},
      {R"({"dtype":"int8","symmetric":true,"zero_point_type":"float32"})", "warning key-ignored {}/zero_point_type"},
      {R"({"dtype":"int8","symmetric":false,"zero_point_type":"float32"})",
       "warning zero-point-range {}/zero_point_type"},
      {R"({"dtype":"int8","is_dynamic":true})", "warning key-ignored {}/is_dynamic"},
      {R"({"dtype":"int8","round_method":"ceil"})", "error value-unknown {}/round_method"},
      {R"({"dtype":"int8","scale_type":"pof2"})", "warning key-ignored {}/scale_type"},
      {R"({"dtype":"int8","scale_type":"float8_e5m3"})", ""},
      {R"({"dtype":"int8","round_method":"half_away"})", ""},
      {R"({"dtype":"int8","scale_format":"e8m0"})", "warning key-ignored {}/scale_format"},
      {R"({"dtype":"int8","scale_calculation_mode":"even"})", "warning key-ignored {}/scale_calculation_mode"},
      {R"({"dtype":"int8","mx_element_dtype":"fp4"})", "warning key-ignored {}/mx_element_dtype"},
      {R"({"dtype":"int8","block_size":[1]})", "error type-invalid {}/block_size"},
      {R"({"dtype":"int8","block_size":[1,2]})", "warning key-ignored {}/block_size"},
      {R"({"dtype":"int8","qat_spec":{}})", "error not-implemented {}/qat_spec"},
      {R"({"dtype":"int8","qat_spec":{"threshold_init_meth":"_kl_j"}})", "error not-implemented {}/qat_spec"},
      {R"({"dtype":"int8","observer_cls":"TQT","qat_spec":{"threshold_init_meth":"_LL_J"}})", ""},
      {R"({"dtype":"int8","observer_cls":"TQT","qat_spec":{"threshold_init_meth":"_4sd"}})",
       "error value-unknown {}/qat_spec"},
      {R"({"dtype":"int8","qscheme":"per_channel","ch_axis":0,"observer_cls":"PerChannelMSE","observer_options":{"weighted":true}})",
       ""},
      {R"({"dtype":"int8","qscheme":"per_channel","ch_axis":0,"observer_options":{"weighted":true}})",
       "error value-invalid {}/observer_options"},
      {R"({"dtype":"int8","is_scale_quant":true})", "error value-invalid {}/is_scale_quant"},
      {R"({"dtype":"int8","max_input_numel":0})", "error value-invalid {}/max_input_numel\nnote no-effect {}"},
      {R"({"dtype":"bfloat16","qscheme":"per_tensor","symmetric":true})", "warning key-ignored {}"},
      {R"({"dtype":"int8","axis":0,"ch_axis":0,"qscheme":"per_channel"})", "error key-conflict {}/ch_axis"},
      {R"([])", "error value-invalid {}"},
      {R"([{"dtype":"fp8_e4m3"},{"dtype":"int4","qscheme":"per_channel"}])", ""},
      {R"([{"dtype":"fp8_e4m3"},{"dtype":"int4"},{"dtype":"int2"}])", "error not-implemented {}"},
      {R"([{"dtype":"int8"},{"dtype":"int4"}])", "error value-invalid {}"},
      {R"([{"dtype":"fp8_e4m3"},{"dtype":"bfloat16"}])", "error value-invalid {}"},
      {R"([{"dtype":"fp8_e4m3"},{"dtype":"uint4","zero_point_type":"float32"}])", "error value-invalid {}"},
      {R"([{"dtype":"fp4","qscheme":"per_group","group_size":16},{"dtype":"fp8_e4m3","is_scale_quant":true}])", ""},
      {R"([{"dtype":"fp4"},{"dtype":"fp8_e4m3","is_scale_quant":true}])", "error value-invalid {}"},
      {R"({"dtype":"int8","grid":{"divisor":"codes"}})", "error value-unknown {}/grid/divisor"},
      {R"({"dtype":"int8","grid":{"narow":true}})", "error key-unknown {}/grid/narow"},
      {R"({"dtype":"int8","grid":{"smallest_scale":-1}})", "error value-invalid {}/grid/smallest_scale"},
      {R"({"dtype":"int8","observer_options":{"percentile":101}})",
       "error value-invalid {}/observer_options/percentile"},
      {R"({"dtype":"int8","observer_options":{"bins":"many"}})", "error type-invalid {}/observer_options/bins"},
      {R"({"dtype":"int99","qscheme":"x","round_method":"y","zap":1})",
       "error key-unknown {}/zap\nerror value-unknown {}/dtype\nerror value-unknown {}/qscheme\nerror value-unknown "
       "{}/round_method"},
  };
  for (const ParseCase& c : cases) {
    CAPTURE(c.text);
    std::string expected = c.expected;
    for (size_t at; (at = expected.find("{}")) != std::string::npos;) expected.replace(at, 2, kG);
    CHECK(summary_of(config::check(parse_weight(c.text))) == expected);
    CHECK(static_cast<bool>(config::parse_text(parse_weight(c.text))) ==
          (expected.find("error ") == std::string::npos));
  }
}

TEST_CASE("whole configs: what is accepted, refused and noted") {
  const std::string g = R"("global_quant_config":{"weight":{"dtype":"int8"}})";
  const ParseCase cases[] = {
      {"{" + g + R"(,"exclude":null,"layer_quant_config":null,"layer_type_quant_config":null,"algo_config":null})", ""},
      {"{" + g +
           R"(,"quant_method":"quark","version":null,"export":{"kv_cache_group":[],"min_kv_scale":0.0,"pack_method":"order",)"
           R"("weight_format":"real_quantized","weight_merge_groups":null}})",
       ""},
      {R"({"model_type":"llama","hidden_size":64,"quantization_config":{)" + g + R"(,"quant_method":"quark"}})", ""},
      {R"({"$schema":"x","dialect":"quark","resolution":"replace","indivisible_groups":"fallback","non_finite":"saturate",)" +
           g + "}",
       ""},
      {R"({"layer_quant_config":{"*.q":{"weight":{"dtype":"int8"}}},"kv_cache_quant_config":{},"quant_mode":"fx_graph_mode"})",
       "note no-effect "},
      {R"({"layer_type_quant_config":{"nn.Linear":{"weight":{"dtype":"int8"},"target_device":"cpu"}}})",
       "note no-effect /layer_type_quant_config/nn.Linear"},
      {"{}", "error key-missing "},
      {R"({"exclude":["a"]})", "error key-missing "},
      {R"({"global_quant_config":{}})", "warning nothing-quantized "},
      {R"({"model_type":"llama"})", "error key-missing "},
      {R"({"quantization_config":7})", "error type-invalid /quantization_config"},
      {R"({"quantization_config":{"global_quant_config":{"wieght":{}}}})",
       "error key-unknown /quantization_config/global_quant_config/wieght"},
      {"[]", "error type-invalid "},
      {"{" + g + R"(,"exclde":[]})", "error key-unknown /exclde"},
      {"{" + g + R"(,"exclude":"lm_head"})", "error type-invalid /exclude"},
      {"{" + g + R"(,"exclude":["a",3,""]})", "error type-invalid /exclude/1\nerror value-invalid /exclude/2"},
      {"{" + g + R"(,"layer_quant_config":{"a/b~":{"weight":{"dtype":"x"}}}})",
       "error value-unknown /layer_quant_config/a~1b~0/weight/dtype"},
      {"{" + g + R"(,"layer_quant_config":{"a":null}})", "error type-invalid /layer_quant_config/a"},
      {"{" + g + R"(,"layer_quant_config":[]})", "error type-invalid /layer_quant_config"},
      {"{" + g + R"(,"layer_type_quant_config":{"Lineer":{}}})", "error value-unknown /layer_type_quant_config/Lineer"},
      {"{" + g + R"(,"layer_type_quant_config":{"Linear":{},"nn.Linear":{}}})",
       "error key-conflict /layer_type_quant_config/nn.Linear"},
      {"{" + g + R"(,"layer_quant_config":{"a":{"target_device":"tpu"}}})",
       "error value-unknown /layer_quant_config/a/target_device\nnote no-effect /layer_quant_config/a"},
      {"{" + g + R"(,"quant_method":"gptq"})", "warning key-unknown /global_quant_config\nwarning not-applied "},
      {"{" + g + R"(,"dialect":"aihwkit"})", "error key-unknown /global_quant_config"},
      {"{" + g + R"(,"dialect":"quarck"})", "error value-unknown /dialect"},
      {"{" + g + R"(,"resolution":"fields"})", "error value-unknown /resolution"},
      {"{" + g + R"(,"indivisible_groups":"skip"})", "error value-unknown /indivisible_groups"},
      {"{" + g + R"(,"non_finite":true})", "error type-invalid /non_finite"},
      {"{" + g + R"(,"quant_mode":"eager"})", "error value-unknown /quant_mode\nnote no-effect "},
      {"{" + g + R"(,"log_severity_level":9})", "error value-invalid /log_severity_level\nnote no-effect "},
      {"{" + g + R"(,"export":{"pack_method":"shuffle"}})", "error value-unknown /export/pack_method"},
      {"{" + g + R"(,"algo_config":{"name":"awq","scaling_layers":[]}})", ""},
      {"{" + g + R"(,"algo_config":{"name":"qronos"}})", ""},
      {"{" + g + R"(,"algo_config":{"name":"svdquant"}})", "error not-implemented /algo_config"},
      {"{" + g + R"(,"algo_config":[{"name":"gptq"},{"name":"gptk"},{}]})",
       "error value-unknown /algo_config/1/name\nerror key-missing /algo_config/2"},
      {"{" + g + R"(,"pre_quant_opt_config":[{"name":"smoothquant"}]})", ""},
      {"{" + g +
           R"(,"kv_cache_quant_config":{"*k_proj":{"output_tensors":{"dtype":"fp8_e4m3","observer_cls":"PerTensorMinMaxObserver"}}}})",
       ""},
      {"{" + g + R"(,"kv_cache_quant_config":{"*k_proj":{"output":{}}}})",
       "error key-unknown /kv_cache_quant_config/*k_proj/output"},
      {"{" + g + R"(,"kv_cache_quant_config":{"*k_proj":{"weight":{"dtype":"int8"}}}})",
       "warning not-applied /kv_cache_quant_config/*k_proj"},
      {"{" + g + R"(,"softmax_quant_spec":{"dtype":"fp8_e4m3"}})", "error not-implemented /softmax_quant_spec"},
      {"{" + g + R"(,"shared_scale_groups":[["q","k"]]})", ""},
      {"{" + g + R"(,"keep_prequantized_layers":false})", "error not-implemented /keep_prequantized_layers"},
      {R"({"global_quant_config":{"weight":{"dtype":"int8"},"bias":{"dtype":"int8"},"input_tensors":{"dtype":"int8"}}})",
       "note bias-format /global_quant_config/bias"},
      {R"({"global_quant_config":{"weight":{"dtype":"int8"},"input_tensors":{"dtype":"int8","is_dynamic":true}}})", ""},
      {R"({"global_quant_config":{"weight":{"dtype":"int8"},"input_tensors":{"dtype":"fp4","qscheme":"per_group","group_size":32,)"
       R"("observer_cls":"PerBlockMXObserver","is_dynamic":true}}})",
       ""},
      {R"({"global_quant_config":{"weight":{"dtype":"int8"},"input_tensors":{"dtype":"int8","qscheme":"per_group","group_size":32}}})",
       "error value-invalid /global_quant_config/input_tensors/is_dynamic"},
      {R"({"global_quant_config":{"weight":{"dtype":"mx6","group_size":16},"input_tensors":{"dtype":"mx6","is_dynamic":null,)"
       R"("ch_axis":-1,"group_size":16}}})",
       ""},
      {R"({"global_quant_config":{"weight":{"dtype":"int8"},"input_tensors":{"dtype":"mx","mx_element_dtype":"int8"}}})",
       ""},
      {R"({"global_quant_config":{"weight":{"dtype":"int8"},"output_tensors":{"dtype":"int8","qscheme":"per_channel"}}})",
       "error key-missing /global_quant_config/output_tensors"},
      {"int4_wo_128", ""},
      {" int8\n", ""},
      {"\"fp8\"", ""},
      {"int5_wo_128", "error preset-unknown "},
      {"true", "error preset-unknown "},
      {"", "error json-invalid byte 0"},
  };
  for (const ParseCase& c : cases) {
    CAPTURE(c.text);
    CHECK(summary_of(config::check(c.text)) == c.expected);
  }
}

TEST_CASE("broken JSON is one diagnostic") {
  for (const std::string& text : {std::string("{\"a\":"), std::string("{\"a\":1,\"a\":2}"), std::string(100, '['),
                                  std::string("{]"), "{\"a\":\"" + std::string((8u << 20) + 1, 'x') + "\"}"}) {
    const auto diagnostics = config::check(text);
    REQUIRE(diagnostics.size() == 1);
    CHECK(diagnostics[0].code == "json-invalid");
    CHECK(diagnostics[0].severity == Severity::error);
  }
}

TEST_CASE("dialects") {
  CHECK(config::check("int8", "quark").empty());
  CHECK(config::check(" \t\r\nint8\r\n ").empty());
  CHECK(summary_of(config::check(" \n")) == "error json-invalid byte 2");
  CHECK(config::check("aihwkit_int8", "aihwkit").empty());
  CHECK(config::check("q4_k_m", "gguf").empty());
  CHECK(config::check("mxfp4", "gguf").empty());
  CHECK(config::check("mxfp4", "quark").empty());
  CHECK(summary_of(config::check("int8", "gptq")) == "error dialect-mismatch ");
  CHECK(summary_of(config::check("int8", "gguf")) == "error dialect-mismatch ");
  CHECK(summary_of(config::check("q4_k_m", "quark")) == "error dialect-mismatch ");
  CHECK(summary_of(config::check("int9", "gptq")) == "error preset-unknown ");
  CHECK(summary_of(config::check(R"({"quant_method":"awq"})", "gptq")) == "error dialect-mismatch ");
  CHECK(summary_of(config::check(R"({"bits":4})", "awq")) == "");
  CHECK(summary_of(config::check("int8", "quarks")) == "error value-unknown ");
}

TEST_CASE("hints name the nearest word") {
  const auto hint = [](const std::string& text) {
    const auto diagnostics = config::check(text);
    return diagnostics.empty() ? std::string() : diagnostics[0].hint;
  };
  CHECK(hint("int4_wo_129") == "did you mean \"int4_wo_128\"?");
  CHECK(hint("q4km") == "did you mean \"q4_k_m\"?");
  CHECK(hint(parse_weight(R"({"dtype":"int8","observer":"x"})")) == "did you mean \"observer_cls\"?");
  CHECK(hint(parse_weight(R"({"dtype":"fp8_e4m4"})")) == "did you mean \"fp8_e4m3\"?");
  CHECK(hint(parse_weight(R"({"dtype":"int8","qscheme":"per_chanel"})")) == "did you mean \"per_channel\"?");
  CHECK(hint(parse_weight(R"({"dtype":"int8","observer_cls":"PerTensorMinMaxObsrever"})")) ==
        "did you mean \"PerTensorMinMaxObserver\"?");
  CHECK(hint(parse_weight(
            R"({"dtype":"int8","qscheme":"per_group","group_size":32,"observer_cls":"PerTensorMinMax"})")) ==
        "these do: PerGroupMinMaxObserver, PerGroupMSEObserver, HQQObserver");
}

TEST_CASE("defaults that Quark requires") {
  const auto spec = [](const std::string& text) {
    const auto parsed = config::parse_spec_text(text);
    REQUIRE(static_cast<bool>(parsed));
    return *parsed;
  };
  QuantizationSpec expected;  // int8 per_tensor symmetric half_even
  CHECK(spec(R"({"dtype":"int8"})") == expected);
  expected.dtype = Dtype::uint4;
  expected.qscheme = QScheme::per_group;
  expected.observer = ObserverId::PerGroupMinMaxObserver;
  expected.ch_axis = -1;
  expected.group_size = 64;
  expected.symmetric = false;
  CHECK(spec(R"({"dtype":"uint4","qscheme":"per_group","group_size":64})") == expected);
  CHECK(spec(R"({"dtype":"uint4","observer_cls":"PerGroupMinMax","group_size":64})") == expected);
  expected = {};
  expected.dtype = Dtype::fp8_e4m3;
  expected.qscheme = QScheme::per_channel;
  expected.observer = ObserverId::PerChannelMinMaxObserver;
  CHECK(spec(R"({"dtype":"fp8_e4m3","qscheme":"per_channel"})") == expected);
  expected.ch_axis = 1;
  CHECK(spec(R"({"dtype":"fp8_e4m3","qscheme":"per_channel","axis":1})") == expected);
  expected = {};
  expected.qscheme = QScheme::per_channel;
  expected.observer = ObserverId::PerChannelHQQObserver;  // a method's name goes with the scheme
  CHECK(spec(R"({"dtype":"int8","qscheme":"per_channel","observer_cls":"HQQ"})") == expected);
  expected = {};
  expected.scale_type = ScaleType::bfloat16;
  expected.round_method = RoundMethod::round;
  CHECK(spec(R"({"dtype":"int8","scale_type":"bfloat16","round_method":"round"})") == expected);
}

TEST_CASE("errors sum up the problems and keep them all") {
  List<Diagnostic> problems;
  const auto parsed =
      config::parse_text(parse_weight(R"({"dtype":"int99","a":1,"b":2,"c":3,"d":4})"), "auto", &problems);
  REQUIRE_FALSE(static_cast<bool>(parsed));
  CHECK(parsed.error().code == ErrorCode::config_invalid);
  CHECK(parsed.error().where == kG + "/a");
  CHECK(parsed.error().message.find("and 2 more") != std::string::npos);
  CHECK(problems.size() == 5);

  const auto spec = config::parse_spec_text(R"({"dtype":"int8","symmetric":"yes"})", &problems);
  REQUIRE_FALSE(static_cast<bool>(spec));
  CHECK(spec.error().code == ErrorCode::spec_invalid);
  CHECK(spec.error().where == "/symmetric");
  CHECK(spec.error().message == "expected true or false, found a string");
}

TEST_CASE("a note at many places is one line, and the error after it is not lost") {
  std::string text =
      R"({"global_quant_config":{"weight":{"dtype":"int8"},"bias":{"dtype":"int8"}},"layer_quant_config":{)";
  for (int i = 0; i < 300; ++i) text += "\"l" + std::to_string(i) + R"(":{"bias":{"dtype":"int8"}},)";
  const auto remarks = config::check(text + R"("z":{}}})");
  REQUIRE(remarks.size() == 1);
  CHECK(remarks[0].message.ends_with("(and at 300 other places)"));
  const auto errors = config::check(text + R"("z":{"q":1}}})");
  REQUIRE(errors.size() == 2);
  CHECK(errors[0].where == "/layer_quant_config/z/q");
  CHECK_FALSE(static_cast<bool>(config::parse_text(text + R"("z":{"q":1}}})")));
}

TEST_CASE("maps keep their order, and the source is rewritten with current key names") {
  const auto parsed = config::parse_text(
      R"({"layer_quant_config":{"z":{"weight":{"dtype":"int8","dynamic":false,"qscheme":"per_channel","axis":1}},"a":{}},)"
      R"("layer_type_quant_config":{"torch.nn.modules.linear.Linear":{"weight":{"dtype":"int8"}}},"exclude":["q","b"]})");
  REQUIRE(static_cast<bool>(parsed));
  const Config& c = parsed->config;
  REQUIRE(c.layer.size() == 2);
  CHECK(c.layer[0].first == "z");
  CHECK(c.layer[1].first == "a");
  CHECK(c.layer_type[0].first == "Linear");
  CHECK(c.exclude == List<std::string>{"q", "b"});
  CHECK(json::write(*c.source.find("layer_quant_config")->find("z")) ==
        R"({"weight":{"dtype":"int8","is_dynamic":false,"qscheme":"per_channel","ch_axis":1}})");
}

TEST_CASE("diagnostics as JSON") {
  const Diagnostic d{Severity::warning, "key-ignored", "/a", "m", ""};
  CHECK(json::write(to_json(d)) == R"({"severity":"warning","code":"key-ignored","where":"/a","message":"m"})");
  CHECK(json::write(to_json(List<Diagnostic>{{Severity::note, "no-effect", "", "m", "h"}})) ==
        R"([{"severity":"note","code":"no-effect","where":"","message":"m","hint":"h"}])");
}
