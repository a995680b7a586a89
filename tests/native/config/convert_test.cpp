// Configs from one dialect to another: what arrives, and what is said to be lost.
#include "config/dialects/convert.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "config/dialects/write.h"
#include "config/presets.h"
#include "config/resolve/resolve.h"
#include "diagnostics.h"

using namespace wasmquant;

namespace {

config::ConvertedConfig convert(const std::string& text, const std::string& to) {
  auto converted = config::convert_text(text, to);
  CAPTURE(text);
  REQUIRE(static_cast<bool>(converted));
  return std::move(*converted);
}

Config convert_config_of(const json::Value& value) {
  auto parsed = config::parse_text(json::write(value));
  CAPTURE(json::write(value));
  REQUIRE(static_cast<bool>(parsed));
  return std::move(parsed->config);
}

// Places of what is lost, notes left out.
std::string places(const config::ConvertedConfig& converted) {
  std::string text;
  for (const Diagnostic& d : converted.losses)
    if (d.severity == Severity::warning) text += (text.empty() ? "" : " ") + d.where;
  return text;
}

std::string message_at(const config::ConvertedConfig& converted, const std::string& where) {
  for (const Diagnostic& d : converted.losses)
    if (d.where == where) return d.message;
  return {};
}

constexpr const char* kDialectTexts[] = {
    R"({"dialect":"aihwkit","module_qconfig_map":{"Linear":{"module_qconfig":{"weight_quant":{"n_bits":4,"per_channel":true,
      "range_estimator":"MSE"},"activation_quant":{"n_bits":8,"symmetric":false}}}},"instance_qconfig_map":{"head":{}},
      "input_activation_qconfig_map":{"head":{"n_bits":8}},"excluded_modules":["a"]})",
    R"({"dialect":"brevitas","global_quant_config":{"weight":{"bit_width":4,"qscheme":"per_channel"},"input_tensors":{}},
      "algo_config":[{"name":"GPTQ"}]})",
    R"({"config_groups":{"group_0":{"targets":["Linear"],"weights":{"num_bits":4,"group_size":128}}},"ignore":["lm_head"]})",
    R"({"quant_method":"gptq","bits":4,"group_size":128,"desc_act":true,"dynamic":{"-:a":{},"b":{"bits":8}}})",
    R"({"quant_method":"awq","modules_to_not_convert":["visual"]})",
    R"({"global_quant_config":{"weight":{"dtype":"int8","axis":0,"qscheme":"per_channel"}},"exclude":["lm_head"]})",
};

}  // namespace

TEST_CASE("converting a config to its own dialect only adds default values, and is stable") {
  for (const std::string text : kDialectTexts) {
    CAPTURE(text);
    const auto first = config::parse_text(text);
    REQUIRE(static_cast<bool>(first));
    const std::string dialect(config::name_of(first->config.dialect));
    const config::ConvertedConfig once = convert(text, dialect);
    CHECK(once.losses.empty());
    CHECK(convert_config_of(once.config) == first->config);
    CHECK(convert(json::write(once.config), dialect).config == once.config);
  }
}

TEST_CASE("every dialect converts to every other; the result reads without errors and is stable") {
  for (const std::string text : kDialectTexts)
    for (const char* to : {"quark", "brevitas", "aihwkit", "compressed-tensors", "gptq", "awq"}) {
      CAPTURE(text);
      CAPTURE(to);
      const auto converted = config::convert_text(text, to);
      if (!converted) {
        CHECK(converted.error().code == ErrorCode::config_invalid);
        continue;
      }
      const Config config = convert_config_of(converted->config);
      CHECK(config::name_of(config.dialect) == to);
      CHECK(convert_config_of(convert(json::write(converted->config), to).config) == config);
    }
}

TEST_CASE("presets convert to compressed-tensors and back with the same plan") {
  const std::vector<uint64_t> shape = {64, 256};
  size_t count = 0;
  std::string cannot;
  for (const config::Preset& preset : config::presets()) {
    if (!preset.whole.empty()) continue;  // of a dialect with other numbers
    auto there = config::convert_text(preset.config_text(), "compressed-tensors");
    if (!there) continue;  // plain casts and blocks
    CAPTURE(preset.name);
    if (places(*there) != "") {
      cannot += std::string(preset.name) + " ";
      continue;
    }
    const config::ConvertedConfig back = convert(json::write(there->config), "quark");
    CHECK(back.losses.empty());
    const Config before = convert_config_of(*json::parse(preset.config_text())), after = convert_config_of(back.config);
    for (const char* tensor : {"model.layers.0.q_proj.weight", "lm_head.weight", "model.embed_tokens.weight"}) {
      const Resolved a = Resolver(before).resolve(tensor, shape, true),
                     b = Resolver(after).resolve(tensor, shape, true);
      CHECK(a.weight == b.weight);
    }
    ++count;
  }
  CHECK(count >= 13);
  CHECK(cannot ==
        "int4_wo_32 int4_wo_64 int4_wo_128 int4_wo_per_channel int4_wa_64 "  // signed scales
        "int3_wo_32 int3_wo_64 int3_wo_128 int2_wo_32 int2_wo_64 "
        "int4_fp8 "                                 // two stages
        "mxfp8 mxfp4 mxfp4_weight_only mxfp4_fp8 "  // scales refit to calibration data
        "mxfp4_mxfp6_e2m3 ");                       // these and fp6 inputs
}

TEST_CASE("presets convert to GPTQ and AWQ where those can express them") {
  const auto signed_scales = convert(std::string(config::preset_named("int4_wo_128")->config_text()), "gptq");
  CHECK(places(signed_scales) == "/global_quant_config/weight /global_quant_config/weight");
  CHECK(signed_scales.losses[0].message == "gptq has no key for signed scales");
  CHECK(signed_scales.losses[1].message == "gptq has no key for scales that are refit");
  CHECK(places(convert(std::string(config::preset_named("uint4_wo_128")->config_text()), "awq")) == "");
  CHECK(places(convert(std::string(config::preset_named("int4_wo_128")->config_text()), "awq")) ==
        "/global_quant_config/weight /global_quant_config/weight /global_quant_config/weight");
  CHECK_FALSE(static_cast<bool>(config::convert_text(config::preset_named("fp8")->config_text(), "gptq")));
  CHECK_FALSE(static_cast<bool>(config::convert_text("int8", "fp8")));
  CHECK_FALSE(static_cast<bool>(config::convert_text("int8", "nonsense")));
}

TEST_CASE("each loss is reported at its place") {
  const std::string quark = R"({"global_quant_config":{"weight":{"dtype":"int4","qscheme":"per_group","group_size":64},
      "input_tensors":{"dtype":"int8","is_dynamic":true}},
    "layer_quant_config":{"head":{"weight":{"dtype":"int8","round_method":"round"}},"*.v":{"weight":{"dtype":"fp8_e4m3"}}},
    "exclude":["a","*.b"],"algo_config":[{"name":"gptq"},{"name":"awq"}],"shared_scale_groups":[["q","k"]]})";
  CHECK(places(convert(quark, "aihwkit")) ==
        "/layer_quant_config/head/weight /layer_quant_config/head/weight /layer_quant_config/head "
        "/layer_quant_config/head /layer_quant_config/*.v /global_quant_config/weight /global_quant_config/weight "
        "/global_quant_config /exclude/1 /algo_config /shared_scale_groups");
  CHECK(places(convert(quark, "brevitas")) ==
        "/layer_quant_config/head /layer_quant_config/*.v /global_quant_config /global_quant_config "
        "/global_quant_config/weight /global_quant_config/weight /exclude/0 /shared_scale_groups /algo_config/1");
  CHECK(places(convert(quark, "compressed-tensors")) ==
        "/layer_quant_config/head/weight /algo_config /shared_scale_groups");
  CHECK(places(convert(quark, "gptq")) ==
        "/global_quant_config /layer_quant_config/head /layer_quant_config/head/weight /layer_quant_config/*.v "
        "/layer_quant_config/*.v/weight /algo_config/1 /shared_scale_groups");

  const config::ConvertedConfig numbers = convert(
      R"({"dialect":"aihwkit","module_qconfig_map":{"Linear":{"module_qconfig":{"weight_quant":{"n_bits":8}}}}})",
      "quark");
  CHECK(message_at(numbers, "/module_qconfig_map/Linear/module_qconfig/weight_quant") ==
        "quark computes with its own numbers: divisor of the scale, signedness by the data, division by the scale, "
        "smallest scale");
  CHECK(convert_config_of(numbers.config).layer_type[0].second.weight.front().grid == RoundingGrid());

  const config::ConvertedConfig plain = convert(
      R"({"dialect":"brevitas","global_quant_config":{"weight":{"quant_type":"float_quant","exponent_bit_width":3,
        "mantissa_bit_width":4,"bit_width":8}},"pre_quant_opt_config":[]})",
      "quark");
  CHECK(message_at(plain, "/global_quant_config/weight") == "Quark has no float of 3 exponent and 4 mantissa bits");
}

TEST_CASE("algorithms that two dialects share") {
  const config::ConvertedConfig quark = convert(
      R"({"dialect":"brevitas","global_quant_config":{"weight":{}},"pre_quant_opt_config":[{"name":"Preprocess"},
        {"name":"ActivationEqualization","alpha":0.25}],"algo_config":[{"name":"GPTQ","act_order":true}]})",
      "quark");
  CHECK(json::write(quark.config["algo_config"]) ==
        R"([{"name":"smooth","alpha":0.25},{"name":"gptq","desc_act":true}])");
  CHECK(message_at(quark, "/pre_quant_opt_config/0") == "Quark has no counterpart of Preprocess");
  const config::ConvertedConfig back = convert(json::write(quark.config), "brevitas");
  CHECK(back.config["pre_quant_opt_config"].items().size() == 1);
  CHECK(json::write(back.config["algo_config"]) == R"([{"name":"GPTQ","act_order":true}])");
  const config::ConvertedConfig gptq = convert(json::write(quark.config), "quark");
  CHECK(gptq.losses.empty());
  const config::ConvertedConfig beyond = convert(
      R"({"global_quant_config":{"weight":{"dtype":"int8"}},"pre_quant_opt_config":[{"name":"smooth","alpha":1.5}]})",
      "brevitas");
  CHECK(json::write(beyond.config["pre_quant_opt_config"]) == R"([{"name":"ActivationEqualization"}])");
  CHECK(message_at(beyond, "/pre_quant_opt_config/0/alpha") == "Brevitas's alpha is a number from 0 to 1");
}

TEST_CASE("patterns are translated to the other dialect's syntax") {
  CHECK(config::regex_of("model.*.q_proj") == "model\\..*\\.q_proj$");
  CHECK(config::regex_of("a?[bc][!d-e]") == "a.[bc][^d-e]$");
  CHECK(config::regex_of("re:x|y") == "x|y");
  CHECK(config::glob_of("a[0]*") == "a[[]0][*]");
  for (const char* glob : {"*.q", "a?c", "[ab]*", "[!a]b", "x[", "a]b", "[]]x", "plain", "a+b(c)"}) {
    const NamePattern as_glob(glob), as_regex("re:" + config::regex_of(glob));
    for (const char* name :
         {"a.q", ".q", "abc", "b", "bb", "x[", "a]b", "]x", "plain", "plainer", "a+b(c)", "aab(c)"}) {
      CAPTURE(glob);
      CAPTURE(name);
      CHECK(as_glob.matches(name) == as_regex.matches(name));
    }
  }
}
