// Configs written in Quark's keys read back as they were.
#include "config/dialects/write.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "config/config_text.h"
#include "config/presets.h"
#include "config/resolve/resolve.h"

using namespace wasmquant;

namespace {

Config write_config_of(std::string_view text) {
  auto parsed = config::parse_text(text);
  REQUIRE(static_cast<bool>(parsed));
  return std::move(parsed->config);
}

bool has_errors(const List<Diagnostic>& diagnostics) {
  return std::any_of(diagnostics.begin(), diagnostics.end(),
                     [](const auto& d) { return d.severity == Severity::error; });
}

}  // namespace

TEST_CASE("a spec is written with every key of Quark") {
  const auto spec = config::parse_spec_text(R"({"dtype":"uint4","qscheme":"per_group","group_size":32})");
  REQUIRE(static_cast<bool>(spec));
  CHECK(
      json::write(config::to_json(*spec)) ==
      R"({"dtype":"uint4","is_dynamic":false,"qscheme":"per_group","ch_axis":-1,"group_size":32,"block_size":null,)"
      R"("symmetric":false,"round_method":"half_even","scale_type":"float","scale_format":null,"scale_calculation_mode":null,)"
      R"("mx_element_dtype":null,"observer_cls":"PerGroupMinMaxObserver","is_scale_quant":false,"enable_buffer_reuse":false,)"
      R"("max_input_numel":4194304,"zero_point_type":"int32"})");
  const auto cast = config::parse_spec_text(R"({"dtype":"bfloat16"})");
  const json::Value written = config::to_json(*cast);
  CHECK(written.find("qscheme")->is_null());
  CHECK(written.find("observer_cls")->as_string() == "PlaceholderObserver");
}

TEST_CASE("specs of other dialects keep their numbers") {
  List<std::string> texts;
  for (const char* estimator :
       {R"("current_minmax","range_estimator_params":{"percentile":1.5})",
        R"("MSE","range_estimator_params":{"range_opt_method":"grid","num_candidates":20,"range_margin":0.1})",
        R"("running_minmax","range_estimator_params":{"momentum":0.7})", R"("allminmax")"})
    for (const char* rest : {R"("per_channel":true)", R"("per_channel":false,"symmetric":false)"})
      texts.push_back(std::string(R"({"dialect":"aihwkit","module_qconfig_map":{"Linear":{"module_qconfig":)"
                                  R"({"weight_quant":{"n_bits":4,)") +
                      rest + R"(,"range_estimator":)" + estimator + "}}}}}");
  for (const char* version : {"0.13", "0.12.1", "0.10.3"})
    for (const char* scheme : {"per_tensor", "per_channel", "per_group"})
      for (const char* rest : {R"("bit_width":4)", R"("bit_width":8,"symmetric":false)", R"("scale_type":"pof2")",
                               R"("param_type":"mse","bit_width":3)",
                               R"("quant_type":"float_quant","exponent_bit_width":4,"mantissa_bit_width":3)"})
        texts.push_back(std::string(R"({"dialect":"brevitas","brevitas_version":")") + version +
                        R"(","global_quant_config":{"weight":{"qscheme":")" + scheme + "\"," + rest + "}}}");
  size_t count = 0;
  for (const std::string& text : texts) {
    CAPTURE(text);
    auto parsed = config::parse_text(text);
    if (!parsed) continue;  // a combination that the dialect does not have
    const Config& config = parsed->config;
    const LayerConfig& layer = config.layer_type.empty() ? config.global : config.layer_type[0].second;
    REQUIRE(layer.weight.size() == 1);
    CHECK(!(layer.weight[0].grid == RoundingGrid()));
    const std::string written = json::write(config::to_json(layer.weight[0]));
    CAPTURE(written);
    const auto read = config::parse_spec_text(written);
    REQUIRE(static_cast<bool>(read));
    CHECK(*read == layer.weight[0]);
    ++count;
  }
  CHECK(count >= 25);
}

TEST_CASE("every spec reads back as it was written, without notes") {
  size_t count = 0;
  for (const DtypeInfo& dtype : kDtypes) {
    if (dtype.dtype == Dtype::uint16) continue;  // no config can name it
    for (std::string_view scheme : {R"("per_tensor")", R"("per_channel","ch_axis":1)", R"("per_group","group_size":-1)",
                                    R"("per_group","group_size":16)", R"("per_block","block_size":[2,3])"}) {
      for (std::string_view extra :
           {"", R"(,"scale_format":"e8m0","scale_calculation_mode":"ceil")", R"(,"scale_format":"e4m3")",
            R"(,"exponent_bits":3,"mantissa_bits":0)", R"(,"round_method":"round")",
            R"(,"scale_type":"float16","zero_point_type":"float32")", R"(,"symmetric":false)",
            R"(,"symmetric":false,"zero_point_type":"float32")"}) {
        const std::string text = "{\"dtype\":\"" + std::string(dtype.name) + "\",\"qscheme\":" + std::string(scheme) +
                                 std::string(extra) + "}";
        const auto spec = config::parse_spec_text(text);
        if (!spec) {
          const bool is_plain_integer = dtype.is_integer && extra.find("scale_format") == std::string_view::npos;
          CHECK_FALSE(is_plain_integer);
          continue;
        }
        CAPTURE(text);
        List<Diagnostic> remarks;
        const auto again = config::parse_spec_text(json::write(config::to_json(*spec)), &remarks);
        REQUIRE(static_cast<bool>(again));
        CHECK(*again == *spec);
        const bool own_remark = spec->zero_point_type == ZeroPointType::float32 && dtype.is_signed;
        CHECK(remarks.size() == (own_remark ? 1 : 0));
        ++count;
      }
    }
  }
  CHECK(count > 100);
}

TEST_CASE("a config reads back as it was written") {
  const std::string_view texts[] = {
      R"({"global_quant_config":{"weight":{"dtype":"int8"}}})",
      R"({"global_quant_config":{"weight":{"dtype":"uint4","qscheme":"per_group","group_size":64},"bias":{"dtype":"int8"},
          "input_tensors":{"dtype":"int8"},"output_tensors":[{"dtype":"fp8_e4m3"},{"dtype":"int8"}]},
          "layer_type_quant_config":{"Embedding":{"weight":{"dtype":"int8"}},"Linear":{}},
          "layer_quant_config":{"z.*":{"weight":{"dtype":"bfloat16"}},"a":{}},
          "exclude":["lm_head","*.gate"],"resolution":"replace","indivisible_groups":"fallback","non_finite":"saturate",
          "algo_config":[{"name":"gptq"}],"kv_cache_quant_config":{"*k":{"output_tensors":{"dtype":"fp8_e4m3"}}}})",
      R"({"quantization_config":{"global_quant_config":{"weight":{"dtype":"int4"}},"quant_method":"quark",
          "export":{"pack_method":"order","weight_format":"fake_quantized"}}})",
  };
  for (std::string_view text : texts) {
    const Config first = write_config_of(text);
    const json::Value written = config::to_json(first);
    const Config second = write_config_of(json::write(written));
    CHECK(first == second);
    CHECK(written == config::to_json(second));
  }
  CHECK_FALSE(write_config_of(texts[0]) == write_config_of(texts[2]));
}

TEST_CASE("presets parse without notes and survive writing") {
  CHECK(config::presets().size() >= 36);
  for (const config::Preset& preset : config::presets()) {
    CAPTURE(std::string(preset.name));
    CHECK(config::check(preset.config_text()).empty());
    CHECK(config::check(preset.name).empty());
    const Config config = write_config_of(preset.name);
    CHECK(config.preset == preset.name);
    CHECK_FALSE(preset.title.empty());
    CHECK(preset.description.ends_with("."));
    if (config.dialect == Dialect::gguf) {
      CHECK(config.source["recipe"].as_string() == preset.name);
      continue;
    }
    const bool casts_all = config.whole_cast() != nullptr;
    const bool quantizes_head = !config.layer.empty() && config.layer.front().first == "lm_head";
    CHECK(config.exclude == (casts_all || quantizes_head ? List<std::string>{} : List<std::string>{"lm_head"}));
    if (config.dialect != Dialect::quark) {
      CHECK(config == write_config_of(json::write(config::convert(config, config.dialect).config)));
      continue;
    }
    CHECK(config.indivisible_groups == (casts_all ? IndivisibleGroups::error : IndivisibleGroups::fallback));
    REQUIRE_FALSE(config.global.weight.empty());
    CHECK(config == write_config_of(json::write(config::to_json(config))));
  }
  const Config uint4 = write_config_of("uint4_wo_64");
  CHECK(uint4.global.weight.front().group_size == 64);
  CHECK_FALSE(uint4.global.weight.front().symmetric);
}

TEST_CASE("a name shared by a preset and a recipe is one row, and the output format decides which is meant") {
  size_t rows = 0;
  for (const config::Preset& preset : config::presets()) rows += preset.name == "mxfp4";
  CHECK(rows == 1);
  const auto dialect_of = [](std::string_view text, bool prefers_recipe) {
    const auto parsed = config::parse_for_format(text, prefers_recipe);
    REQUIRE_MESSAGE(parsed, parsed.error().message);
    CHECK(parsed->config.preset == (text.front() == '{' ? "" : text == "\"mxfp4\"" ? "mxfp4" : text));
    return parsed->config.dialect;
  };
  CHECK(dialect_of("mxfp4", false) == Dialect::quark);
  CHECK(dialect_of("mxfp4", true) == Dialect::gguf);
  CHECK(dialect_of("\"mxfp4\"", true) == Dialect::gguf);
  // No recipe has these names, so that the planner can say what GGUF holds.
  CHECK(dialect_of("int8", true) == Dialect::quark);
  CHECK(dialect_of("aihwkit_int8", true) == Dialect::aihwkit);
  CHECK(dialect_of(config::preset_named("mxfp4")->config_text(), true) == Dialect::quark);
  CHECK(dialect_of("q4_k_m", false) == Dialect::gguf);
}

TEST_CASE("Quark reads a regular expression and a parent module as names: the block lists the layers instead") {
  const Config config = write_config_of(R"({
    "global_quant_config": {"weight": {"dtype": "int8"}},
    "layer_quant_config": {"re:.*q_proj": {"weight": {"dtype": "int4"}}},
    "exclude": ["re:.*_head", "m.vision"]})");
  Stages int8 = config.global.weight, int4 = config.layer[0].second.weight;
  const config::ExportedLayer layers[] = {{"m.0.q_proj", "Linear", &int4},
                                          {"m.0.up_proj", "Linear", &int8},
                                          {"m.vision.up", "Linear", nullptr},
                                          {"lm_head", "Linear", nullptr}};
  const json::Value block = config::quantization_config(config, layers, {});
  CHECK(json::write(*block.find("exclude")) == R"(["m.vision","m.vision.up","lm_head"])");
  REQUIRE(block.find("layer_quant_config")->members().size() == 1);
  CHECK(block.find("layer_quant_config")->members()[0].first == "m.0.q_proj");
}

// Whatever the config, a reader that takes layer configs whole must find in the block what each layer became.
TEST_CASE("the block of a finished file tells Quark's reader the truth about every layer") {
  const Config config = write_config_of(R"({
    "global_quant_config": {"weight": {"dtype": "int8"}, "input_tensors": {"dtype": "int8", "is_dynamic": true},
                            "output_tensors": {"dtype": "int8"}, "bias": {"dtype": "int8"}},
    "layer_type_quant_config": {"Embedding": {"weight": {"dtype": "int16"}}, "Conv2d": {"input_tensors": {"dtype": "uint8", "is_dynamic": true}}},
    "layer_quant_config": {"*.q": {"weight": {"dtype": "int4", "qscheme": "per_group", "group_size": 128}}, "*.k": {"bias": {"dtype": "int8"}}},
    "exclude": ["lm_head", "nothing.here"], "algo_config": {"name": "gptq"}})");
  struct Layer {
    const char *name, *type;
    bool kept;
    Stages spec;
  };
  Resolver asked(config);
  std::vector<Layer> layers = {{"m.embed_tokens", "Embedding", false, {}},
                               {"m.0.q", "Linear", false, {}},
                               {"m.1.q", "Linear", false, {}},
                               {"m.0.k", "Linear", false, {}},
                               {"m.0.up", "Linear", true, {}},
                               {"m.0.down", "Linear", true, {}},
                               {"m.0.down.lora_A", "Linear", false, {}},
                               {"stem", "Conv2d", false, {}},
                               {"lm_head", "Linear", true, {}},
                               {"m.wpe2", "Embedding", true, {}}};
  std::vector<config::ExportedLayer> exported;
  for (Layer& layer : layers) {
    if (!layer.kept) layer.spec = asked.layer_config(layer.name, layer.type).weight;
    // A group size that did not fit this layer.
    if (std::string_view(layer.name) == "m.1.q") layer.spec[0].group_size = 32;
  }
  for (const Layer& layer : layers) exported.push_back({layer.name, layer.type, layer.kept ? nullptr : &layer.spec});

  const json::Value block =
      config::quantization_config(config, exported, {PackMethod::reorder, WeightFormat::real_quantized});
  CHECK(block.find("quant_method")->as_string() == "quark");
  CHECK(block.find("algo_config")->is_null());
  CHECK(block.find("global_quant_config")->find("bias")->is_null());
  CHECK(block.find("global_quant_config")->find("output_tensors")->is_null());
  CHECK(block.find("global_quant_config")->find("input_tensors")->is_object());
  CHECK(block.find("layer_type_quant_config")->find("Embedding") == nullptr);
  CHECK(
      json::write(*block.find("export")) ==
      R"({"kv_cache_group":[],"min_kv_scale":0.0,"pack_method":"reorder","weight_format":"real_quantized","weight_merge_groups":null})");
  CHECK(json::write(*block.find("exclude")) == R"(["lm_head","nothing.here","m.0.up"])");

  CHECK_FALSE(has_errors(config::check(json::write(block))));
  Config read = write_config_of(json::write(block));
  CHECK(read.export_info == ExportInfo{});
  read.resolution = Resolution::replace;
  const Resolver reader(read);
  for (const Layer& layer : layers) {
    CAPTURE(layer.name);
    const LayerConfig found = reader.layer_config(layer.name, layer.type);
    const bool quantized = !reader.excludes(layer.name) && !found.weight.empty();
    CHECK(quantized == !layer.kept);
    if (quantized) {
      CHECK(found.weight == layer.spec);
      CHECK(found.input_tensors == asked.layer_config(layer.name, layer.type).input_tensors);
    }
  }
}
