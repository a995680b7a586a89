// aihwkit's dialect: its rules of validation (spec 1.1, 1.5), and which layer gets what (1.2).
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "config/resolve/resolve.h"
#include "diagnostics.h"
#include "tools/aihwkit/aihwkit_grid.h"

using namespace wasmquant;

namespace {

// A map whose Linear has this weight_quant.
std::string aihwkit_weight(const std::string& fields) {
  return R"({"dialect":"aihwkit","module_qconfig_map":{"Linear":{"module_qconfig":{"weight_quant":)" + fields + "}}}}";
}
const std::string kWeight = "/module_qconfig_map/Linear/module_qconfig/weight_quant";

Config aihwkit_config_of(std::string_view text) {
  auto parsed = config::parse_text(text);
  REQUIRE(static_cast<bool>(parsed));
  return std::move(parsed->config);
}

struct AihwkitCase {
  std::string text;
  std::string expected;
};

}  // namespace

TEST_CASE("aihwkit: what is accepted, refused and noted") {
  const AihwkitCase specs[] = {
      {R"({"n_bits":8})", ""},
      {R"({"n_bits":4,"symmetric":false,"per_channel":true})", ""},
      {R"({"n_bits":8,"range_estimator":"MSE"})", ""},
      {R"({"n_bits":8,"range_estimator":"RangeEstimators.MSE"})", ""},
      {R"({"n_bits":8,"range_estimator":"MSE","range_estimator_params":{"range_opt_method":"grid","num_candidates":10}})",
       ""},
      {R"({"n_bits":8,"range_estimator":"running_minmax","range_estimator_params":{"momentum":0.5}})", ""},
      {R"({"n_bits":8,"range_estimator_params":{"percentile":99.5}})", ""},
      {R"({"n_bits":8,"range_estimator_params":{"percentile":0}})", ""},
      {R"({"n_bits":8,"range_estimator":"allminmax"})", ""},
      {R"({"n_bits":1,"symmetric":false})", "error not-implemented {}/n_bits"},
      {R"({"n_bits":1})", "error value-invalid {}/n_bits"},
      {R"({"n_bits":12})", ""},
      {R"({"n_bits":17})", "error not-implemented {}/n_bits"},
      {R"({"n_bits":9223372036854775807})", "error not-implemented {}/n_bits"},
      {R"({"n_bits":"8"})", "error type-invalid {}/n_bits"},
      {R"({"n_bits":8,"bits":8})", "error key-unknown {}/bits"},
      {R"({"n_bits":8,"range_estimator":"minmax"})", "error value-unknown {}/range_estimator"},
      {R"({"n_bits":8,"range_estimator":"allminmax","range_estimator_params":{}})",
       "error value-invalid {}/range_estimator_params"},
      {R"({"n_bits":8,"range_estimator_params":{"momentum":0.9}})",
       "error key-unknown {}/range_estimator_params/momentum"},
      {R"({"n_bits":8,"range_estimator_params":{"percentile":101}})",
       "error value-invalid {}/range_estimator_params/percentile"},
      {R"({"n_bits":8,"range_estimator":"running_minmax","range_estimator_params":{"momentum":-1}})",
       "error value-invalid {}/range_estimator_params/momentum"},
      {R"({"n_bits":8,"range_estimator":"MSE","range_estimator_params":{"num_candidates":0,"range_margin":-1}})",
       "error value-invalid {}/range_estimator_params/num_candidates\n"
       "error value-invalid {}/range_estimator_params/range_margin"},
      {R"({"n_bits":8,"range_estimator":"cross_entropy"})", ""},
      {R"({"n_bits":8,"range_estimator":"cross_entropy","per_channel":true})", "error value-invalid {}/per_channel"},
      {R"({"n_bits":8,"per_channel":true,"range_estimator":"cross_entropy","range_estimator_params":{"range_opt_method":"grid"}})",
       "warning per-channel-ignored {}/per_channel"},
  };
  for (const AihwkitCase& c : specs) {
    std::string expected = c.expected;
    for (size_t at; (at = expected.find("{}")) != std::string::npos;) expected.replace(at, 2, kWeight);
    CAPTURE(c.text);
    CHECK(problems_of(aihwkit_weight(c.text)) == expected);
  }

  const std::string linear = R"("Linear":{"module_qconfig":{"weight_quant":{"n_bits":8}}})";
  const AihwkitCase maps[] = {
      {R"({"module_qconfig_map":{)" + linear + "}}", ""},
      {R"({"dialect":"aihwkit"})", "warning nothing-quantized "},
      {R"({"default_qconfig":{"weight_quant":{"n_bits":8}}})",
       "warning default-has-no-effect /default_qconfig\nwarning nothing-quantized "},
      {R"({"default_qconfig":{"weight_quant":{"n_bits":8}},"append_default_conversions":true})", ""},
      {R"({"module_qconfig_map":{)" + linear + R"(},"excluded_modules":["a.*"]})",
       "warning names-matched-exactly /excluded_modules/0"},
      {R"({"module_qconfig_map":{)" + linear + R"(},"excluded_modules":[7]})",
       "error type-invalid /excluded_modules/0"},
      {R"({"module_qconfig_map":{"Linear":{"quantized_module":"QuantConv2d"}}})",
       "error value-invalid /module_qconfig_map/Linear/quantized_module"},
      {R"({"module_qconfig_map":{"Linear":3}})", "error type-invalid /module_qconfig_map/Linear"},
      {R"({"module_qconfig_map":{)" + linear + R"(},"input_activation_qconfig_map":{"":{"n_bits":8}}})",
       "error value-invalid /input_activation_qconfig_map/\nnote needs-calibration "},
      {R"({"module_qconfig_map":{)" + linear + R"(},"exclude":[]})", "error key-unknown /exclude"},
      {R"({"module_qconfig_map":{"Linear":{"module_qconfig":{"activation_quant":{"n_bits":8},"weight_quant":{"n_bits":8}}}}})",
       "note needs-calibration "},
      {R"({"module_qconfig_map":{"LayerNorm":{"module_qconfig":{"weight_quant":{"n_bits":8}}}}})", ""},
      {R"({"module_qconfig_map":{"<class 'torch.nn.modules.linear.Linear'>":{"module_qconfig":{"weight_quant":{"n_bits":8}}}}})",
       ""},
      {R"({"module_qconfig_map":{"Liner":{"module_qconfig":{"weight_quant":{"n_bits":8}}}}})",
       "error value-unknown /module_qconfig_map/Liner"},
      {R"({"module_qconfig_map":{"MyBlock":{}}})", "error value-unknown /module_qconfig_map/MyBlock"},
      {R"({"module_qconfig_map":{"BatchNorm2d":{"module_qconfig":{"activation_quant":{"n_bits":8}}},)" + linear + "}}",
       "warning not-applied /module_qconfig_map/BatchNorm2d\nnote needs-calibration "},
      {R"({"module_qconfig_map":{"Linear":{"quantized_module":"mine.MyLinear","module_qconfig":{"weight_quant":{"n_bits":8}}}}})",
       "warning not-applied /module_qconfig_map/Linear/quantized_module"},
      {R"({"module_qconfig_map":{"Conv2d":{"module_qconfig":{"weight_quant":{"n_bits":8,"per_channel":true,"range_estimator":"cross_entropy"}}}}})",
       ""},
      {R"({"model_type":"x","quantization_config":{"excluded_modules":[],"module_qconfig_map":{"Linear":{"bits":1}}}})",
       "error key-unknown /quantization_config/module_qconfig_map/Linear/bits"},
  };
  for (const AihwkitCase& c : maps) {
    CAPTURE(c.text);
    CHECK(problems_of(c.text) == c.expected);
  }
}

TEST_CASE("aihwkit: excluded before instance before type; an exact name also decides for its submodules") {
  const Config config = aihwkit_config_of(R"({
    "module_qconfig_map": {
      "Linear": {"module_qconfig": {"weight_quant": {"n_bits": 4, "per_channel": true}}},
      "Embedding": {"module_qconfig": {"activation_quant": {"n_bits": 8}}}},
    "instance_qconfig_map": {
      "blocks.0": {}, "head": {"module_qconfig": {"weight_quant": {"n_bits": 8}}}, "off": {},
      "out": {"module_qconfig": {"weight_quant": {"n_bits": 2}}}, "*.q": {"module_qconfig": {"weight_quant": {"n_bits": 2}}}},
    "excluded_modules": ["out", "blocks.2", "hea", "[ab]"]})");
  struct Row {
    const char* tensor;
    Rule rule;
    const char* where;
    int bits;  // 0: stays
  };
  const Row rows[] = {
      {"a.q.weight", Rule::layer_type, "/module_qconfig_map/Linear/module_qconfig/weight_quant", 4},
      {"blocks.1.q.weight", Rule::layer_type, "/module_qconfig_map/Linear/module_qconfig/weight_quant", 4},
      {"blocks.0.q.weight", Rule::layer_name, "/instance_qconfig_map/blocks.0/module_qconfig", 0},
      {"blocks.00.q.weight", Rule::layer_type, "/module_qconfig_map/Linear/module_qconfig/weight_quant", 4},
      {"blocks.2.q.weight", Rule::excluded, "/excluded_modules/1", 0},
      {"blocks.20.q.weight", Rule::layer_type, "/module_qconfig_map/Linear/module_qconfig/weight_quant", 4},
      {"head.weight", Rule::layer_name, "/instance_qconfig_map/head/module_qconfig/weight_quant", 8},
      {"head10.weight", Rule::layer_type, "/module_qconfig_map/Linear/module_qconfig/weight_quant", 4},
      {"off.weight", Rule::layer_name, "/instance_qconfig_map/off/module_qconfig", 0},
      {"out.weight", Rule::excluded, "/excluded_modules/0", 0},
      {"embed_tokens.weight", Rule::layer_type, "/module_qconfig_map/Embedding/module_qconfig", 0},
      {"a.weight", Rule::layer_type, "/module_qconfig_map/Linear/module_qconfig/weight_quant", 4},
  };
  Resolver resolver(config);
  const std::vector<uint64_t> shape = {16, 64}, image = {8, 3, 3, 3};
  for (const Row& row : rows) {
    const Resolved resolved = resolver.resolve(row.tensor, shape, true);
    CAPTURE(row.tensor);
    CHECK(name_of(resolved.reason.rule) == name_of(row.rule));
    CHECK(resolved.reason.where == row.where);
    CHECK((!resolved.weight.empty() ? static_cast<int>(info_of(resolved.weight[0].dtype).bits) : 0) == row.bits);
  }
  CHECK(resolver.resolve("conv.weight", image, true).reason.rule == Rule::no_config);
  CHECK(lines_of(resolver.unused_patterns()) ==
        "warning pattern-unused /excluded_modules/2\nwarning pattern-unused /excluded_modules/3\n"
        "warning pattern-unused /instance_qconfig_map/blocks.0/module_qconfig\n"
        "warning pattern-unused /instance_qconfig_map/*.q/module_qconfig");
  CHECK(resolver.resolve("head.weight", shape, true).reason.text ==
        "entry \"head\" of instance_qconfig_map names this layer");

  const Config all =
      aihwkit_config_of(R"({"default_qconfig":{"weight_quant":{"n_bits":4}},"append_default_conversions":true,
    "module_qconfig_map":{"Conv2d":{}},"excluded_modules":[]})");
  Resolver defaults(all);
  CHECK_FALSE(defaults.resolve("x.weight", shape, true).weight.empty());
  CHECK_FALSE(defaults.resolve("embed_tokens.weight", shape, true).weight.empty());
  CHECK(defaults.resolve("x.weight", image, true).weight.empty());  // an entry is not filled in
  CHECK(lines_of(defaults.unused_patterns()) == "");

  const Config none =
      aihwkit_config_of(R"({"default_qconfig":{"weight_quant":{"n_bits":4}},"append_default_conversions":true,
    "excluded_modules":[""]})");
  CHECK(Resolver(none).resolve("x.weight", shape, true).reason.rule == Rule::excluded);
}

TEST_CASE("aihwkit: number formats of a spec") {
  const Config config = aihwkit_config_of(aihwkit_weight(R"({"n_bits":4,"range_estimator":"MSE"})"));
  const QuantizationSpec& spec = config.layer_type[0].second.weight.front();
  CHECK(spec.dtype == Dtype::int4);
  CHECK(spec.grid == aihwkit_grid());
  CHECK(spec.observer == ObserverId::PerTensorRangeMSEObserver);
  CHECK(spec.observer_options == ObserverOptions());
  const Config asymmetric = aihwkit_config_of(aihwkit_weight(R"({"n_bits":8,"symmetric":false,"per_channel":true})"));
  CHECK(asymmetric.layer_type[0].second.weight.front().dtype == Dtype::uint8);
  CHECK(asymmetric.layer_type[0].second.weight.front().observer == ObserverId::PerChannelCurrentMinMaxObserver);
  const Config grid = aihwkit_config_of(aihwkit_weight(R"({"n_bits":8,"range_estimator":"MSE","range_estimator_params":{
    "range_opt_method":"grid","num_candidates":20,"range_margin":0.25}})"));
  CHECK(grid.layer_type[0].second.weight.front().observer_options.search == SearchMethod::grid);
  CHECK(grid.layer_type[0].second.weight.front().observer_options.candidates == 20);
  CHECK(grid.layer_type[0].second.weight.front().observer_options.range_margin == 0.25);
  CHECK(asymmetric.layer_type[0].second.weight.front().qscheme == QScheme::per_channel);
}

TEST_CASE("aihwkit: inputs of layers with quantized weights are quantized; other entries get a note") {
  const Config config = aihwkit_config_of(R"({
    "module_qconfig_map": {"Linear": {"module_qconfig": {"weight_quant": {"n_bits": 8}}}},
    "instance_qconfig_map": {"a.off": {}},
    "input_activation_qconfig_map": {
      "a.q": {"n_bits": 8, "range_estimator": "allminmax"}, "a": {"n_bits": 8}, "a.off": {"n_bits": 8},
      "out": {"n_bits": 8}, "b.q": {"n_bits": 8}, "none": {"n_bits": 0}},
    "excluded_modules": ["out"]})");
  Resolver resolver(config);
  const std::vector<uint64_t> shape = {16, 64};
  for (const char* name : {"a.q.weight", "a.off.weight", "a.q.bias", "out.weight"}) resolver.resolve(name, shape, true);
  const LayerConfig layer = resolver.layer_config("a.q", "Linear");
  REQUIRE(layer.input_tensors.size() == 1);
  CHECK(layer.input_tensors[0].observer == ObserverId::PerTensorMinMaxObserver);
  CHECK(layer.input_tensors[0].grid == aihwkit_grid());
  CHECK(resolver.layer_config("a.off", "Linear").input_tensors.empty());
  CHECK(lines_of(resolver.unused_patterns()) ==
        "warning not-applied /input_activation_qconfig_map/a\n"
        "warning not-applied /input_activation_qconfig_map/a.off\n"
        "warning not-applied /input_activation_qconfig_map/out\n"
        "warning pattern-unused /input_activation_qconfig_map/b.q");
}

TEST_CASE("aihwkit: norms are quantized if their class is known; otherwise a note says that they are left") {
  const std::vector<uint64_t> shape = {16};
  {
    const Config config = aihwkit_config_of(R"({"instance_qconfig_map": {
      "block1.norm": {"quantized_module": "QuantLayerNorm", "module_qconfig": {"weight_quant": {"n_bits": 8}}},
      "block1.n2": {"quantized_module": "QuantLayerNorm", "module_qconfig": {"weight_quant": {"n_bits": 4}}}}})");
    Resolver resolver(config);
    CHECK(resolver.resolve("block1.norm.weight", shape, true).weight.size() == 1);
    CHECK(resolver.resolve("block1.n2.weight", shape, true).weight.size() == 1);
    CHECK(resolver.resolve("block2.norm.weight", shape, true).weight.empty());
    CHECK(resolver.unused_patterns().empty());
  }
  for (const char* text :
       {R"({"module_qconfig_map": {"LayerNorm": {"module_qconfig": {"weight_quant": {"n_bits": 8}}}}})",
        R"({"default_qconfig": {"weight_quant": {"n_bits": 8}}, "append_default_conversions": true})"}) {
    const Config config = aihwkit_config_of(text);
    Resolver resolver(config);
    resolver.resolve("block1.norm.weight", shape, true);
    const List<Diagnostic> found = resolver.unused_patterns();
    REQUIRE(found.size() == 1);
    CHECK(found[0].code == "not-applied");
    CHECK(found[0].hint.find("\"layer_types\": {\"block1.norm\": \"LayerNorm\"}") != std::string::npos);
  }
}

TEST_CASE("aihwkit: a quantized module replaces only layers of its class") {
  const Config config = aihwkit_config_of(R"({"instance_qconfig_map": {
    "a": {"quantized_module": "QuantConv2d", "module_qconfig": {"weight_quant": {"n_bits": 8}}}}})");
  Resolver resolver(config);
  const std::vector<uint64_t> shape = {16, 64};
  const Resolved resolved = resolver.resolve("a.weight", shape, true);
  CHECK(resolved.weight.empty());
  CHECK(resolved.reason.text ==
        "entry \"a\" of instance_qconfig_map replaces a Conv2d, and this layer looks like Linear");
  CHECK(lines_of(resolver.unused_patterns()) == "warning not-applied /instance_qconfig_map/a/module_qconfig");
}
