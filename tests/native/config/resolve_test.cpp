// Which spec a tensor gets, and the patterns that match nothing.
#include "config/resolve/resolve.h"

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

#include "config/config_text.h"
#include "config/dialects/write.h"

using namespace wasmquant;

namespace {

Config resolve_config_of(std::string_view text) {
  auto parsed = config::parse_text(text);
  REQUIRE(static_cast<bool>(parsed));
  return std::move(parsed->config);
}

// Every level gives another dtype, so that the dtype tells which one decided.
constexpr std::string_view kLevels = R"({
  "global_quant_config": {"weight": {"dtype": "int8"}},
  "layer_type_quant_config": {"Embedding": {"weight": {"dtype": "int16"}}, "Conv2d": {"weight": {"dtype": "uint8"}}},
  "layer_quant_config": {
    "*.q_proj": {"weight": {"dtype": "int4"}},
    "*.layers.1.*": {"weight": {"dtype": "uint4"}},
    "model.layers.1.self_attn.q_proj": {"weight": {"dtype": "int3"}},
    "*.o_proj": {"bias": {"dtype": "int8"}},
    "conv_?": {"target_device": "cpu"},
    "norm*": {"weight": {"dtype": "int2"}}
  },
  "exclude": ["lm_head", "model.vision", "*.gate", "model.layers.9*", "odd[1]"]})";

struct ResolveCase {
  const char* tensor;
  std::vector<uint64_t> shape;
  const char* dtype;  // "" = stays as it is
  const char* rule;
  const char* where;
};

}  // namespace

TEST_CASE("each tensor gets its spec from the right place") {
  const std::vector<uint64_t> m = {8, 8}, v = {8};
  const ResolveCase cases[] = {
      {"model.layers.0.mlp.up_proj.weight", m, "int8", "global", "/global_quant_config/weight"},
      {"model.layers.0.self_attn.q_proj.weight", m, "int4", "layer-glob", "/layer_quant_config/*.q_proj/weight"},
      {"model.layers.1.self_attn.k_proj.weight", m, "uint4", "layer-glob", "/layer_quant_config/*.layers.1.*/weight"},
      {"model.layers.1.self_attn.q_proj.weight", m, "int3", "layer-name",
       "/layer_quant_config/model.layers.1.self_attn.q_proj/weight"},
      {"model.layers.2.self_attn.o_proj.weight", m, "int8", "global", "/global_quant_config/weight"},
      // Only the first matching pattern is asked; *.o_proj comes after *.layers.1.*
      {"model.layers.1.self_attn.o_proj.weight", m, "uint4", "layer-glob", "/layer_quant_config/*.layers.1.*/weight"},
      {"model.layers.10.self_attn.k_proj.weight", m, "int8", "global", "/global_quant_config/weight"},
      {"q_proj.weight", m, "int8", "global", "/global_quant_config/weight"},
      {"model.Q_PROJ.weight", m, "int8", "global", "/global_quant_config/weight"},
      {"model.embed_tokens.weight", m, "int16", "layer-type", "/layer_type_quant_config/Embedding/weight"},
      {"stem.weight", {8, 3, 3, 3}, "uint8", "layer-type", "/layer_type_quant_config/Conv2d/weight"},
      {"conv_1.weight", {8, 3, 3, 3}, "uint8", "layer-type", "/layer_type_quant_config/Conv2d/weight"},
      {"conv_1.weight", {8, 3, 3}, "int8", "global", "/global_quant_config/weight"},
      {"conv_12.weight", {8, 3, 3}, "int8", "global", "/global_quant_config/weight"},
      {"lm_head.weight", m, "", "excluded", "/exclude/0"},
      {"lm_head.inner.weight", m, "", "excluded", "/exclude/0"},
      {"lm_head2.weight", m, "int8", "global", "/global_quant_config/weight"},
      {"model.lm_head.weight", m, "int8", "global", "/global_quant_config/weight"},
      {"model.vision.layers.0.q_proj.weight", m, "", "excluded", "/exclude/1"},
      {"model.visions.weight", m, "int8", "global", "/global_quant_config/weight"},
      {"model.layers.0.mlp.gate.weight", m, "", "excluded", "/exclude/2"},
      {"model.layers.0.mlp.gate.inner.weight", m, "", "excluded", "/exclude/2"},
      {"model.layers.0.mlp.gate_proj.weight", m, "int8", "global", "/global_quant_config/weight"},
      {"gate.weight", m, "int8", "global", "/global_quant_config/weight"},
      {"model.layers.9.up.weight", m, "", "excluded", "/exclude/3"},
      {"model.layers.95.up.weight", m, "", "excluded", "/exclude/3"},
      {"odd[1].weight", m, "", "excluded", "/exclude/4"},
      {"odd1.weight", m, "", "excluded", "/exclude/4"},
      {"odd1.deep.weight", m, "", "excluded", "/exclude/4"},
      {"odd[1].deep.weight", m, "int8", "global", "/global_quant_config/weight"},
      {"model.norm.weight", v, "", "not-quantizable", ""},
      {"norm1.weight", v, "", "not-quantizable", ""},
      {"act.weight", v, "", "not-quantizable", ""},
      {"video.weight", {8, 3, 2, 2, 2}, "int8", "global", "/global_quant_config/weight"},
      {"odd.weight", {8, 3, 2, 2, 2, 2}, "", "not-quantizable", ""},
      {"model.layers.0.self_attn.q_proj.bias", v, "", "not-a-weight", ""},
      {"model.layers.0.experts.gate_up_proj", {4, 8, 8}, "int8", "global", "/global_quant_config/weight"},
      {"model.layers.0.experts.gate_up_proj_bias", {4, 8}, "", "not-a-weight", ""},
      {"model.inv_freq", v, "", "not-a-weight", ""},
      {"weight", m, "int8", "global", "/global_quant_config/weight"},
  };
  const Config config = resolve_config_of(kLevels);
  Resolver resolver(config);
  for (const ResolveCase& c : cases) {
    CAPTURE(c.tensor);
    const Resolved resolved = resolver.resolve(c.tensor, c.shape, true);
    CHECK((!resolved.weight.empty() ? info_of(resolved.weight[0].dtype).name : "") == std::string_view(c.dtype));
    CHECK(name_of(resolved.reason.rule) == c.rule);
    CHECK(resolved.reason.where == c.where);
    CHECK_FALSE(resolved.reason.text.empty());
  }
  const Resolved stored = resolver.resolve("a.weight", m, false);
  CHECK(stored.weight.empty());
  CHECK(stored.reason.rule == Rule::not_quantizable);
}

TEST_CASE("embeddings never get the global config") {
  const Config config = resolve_config_of("int8");
  Resolver resolver(config);
  const std::vector<uint64_t> shape = {8, 8};
  const Resolved resolved = resolver.resolve("model.embed_tokens.weight", shape, true);
  CHECK(resolved.weight.empty());
  CHECK(resolved.reason.rule == Rule::no_config);

  const Config named = resolve_config_of(
      R"({"global_quant_config":{},"layer_quant_config":{"*embed_tokens":{"weight":{"dtype":"int4"}}}})");
  Resolver by_name(named);
  CHECK(by_name.resolve("model.embed_tokens.weight", shape, true).weight[0].dtype == Dtype::int4);
  const Resolved none = by_name.resolve("model.up.weight", shape, true);
  CHECK(none.weight.empty());
  CHECK(none.reason.rule == Rule::no_config);
}

TEST_CASE("resolution: field by field, or the chosen config as a whole") {
  constexpr std::string_view kText = R"({
    "global_quant_config": {"weight": {"dtype": "int8"}, "input_tensors": {"dtype": "int8", "is_dynamic": true}},
    "layer_type_quant_config": {"Linear": {"output_tensors": {"dtype": "uint8", "is_dynamic": true}}},
    "layer_quant_config": {"*.a": {"weight": {"dtype": "int4"}}, "x.a": {"bias": {"dtype": "int8"}}, "*.n": {}}, "resolution": "MODE"})";
  const auto with = [&](std::string_view mode) {
    std::string text(kText);
    return resolve_config_of(text.replace(text.find("MODE"), 4, mode));
  };
  const std::vector<uint64_t> shape = {8, 8};

  const Config field = with("field");
  Resolver by_field(field);
  const LayerConfig merged = by_field.layer_config("x.a", "Linear");
  CHECK(merged.weight.front().dtype == Dtype::int4);
  CHECK(merged.bias.front().dtype == Dtype::int8);
  CHECK(merged.input_tensors.front().dtype == Dtype::int8);
  CHECK(merged.output_tensors.front().dtype == Dtype::uint8);
  const Resolved fallen = by_field.resolve("x.n.weight", shape, true);
  CHECK(fallen.weight[0].dtype == Dtype::int8);
  CHECK(fallen.reason.rule == Rule::global);
  CHECK(fallen.reason.text ==
        "pattern \"*.n\" of layer_quant_config and entry \"Linear\" of layer_type_quant_config have no weight spec, so "
        "global_quant_config decides");

  const Config replace = with("replace");
  Resolver by_replace(replace);
  CHECK(by_replace.layer_config("x.a", "Linear").weight.empty());
  CHECK(by_replace.layer_config("x.a", "Linear").input_tensors.empty());
  const Resolved whole = by_replace.resolve("x.n.weight", shape, true);
  CHECK(whole.weight.empty());
  CHECK(whole.reason.rule == Rule::layer_glob);
  CHECK(whole.reason.where == "/layer_quant_config/*.n");
  CHECK(by_replace.resolve("y.a.weight", shape, true).weight[0].dtype == Dtype::int4);
}

TEST_CASE("as in Quark: exclude covers what it matches, and a cache entry has priority over all others") {
  constexpr std::string_view kText = R"(
    "global_quant_config": {"weight": {"dtype": "int8"}},
    "layer_quant_config": {"m.a.k_proj": {"weight": {"dtype": "int4"}}},
    "kv_cache_quant_config": {"*proj": {"weight": {"dtype": "int2"}}, "*k_proj": {"weight": {"dtype": "int3"}},
                              "m.v": {"output_tensors": {"dtype": "fp8_e4m3"}}},
    "exclude": ["m.vision", "m.audio.*", "*gate"]})";
  const std::vector<uint64_t> shape = {8, 8};
  const auto dtype_of = [&](std::string_view resolution, std::string_view tensor) {
    const Config config =
        resolve_config_of("{\"resolution\":\"" + std::string(resolution) + "\"," + std::string(kText));
    const Resolved resolved = Resolver(config).resolve(tensor, shape, true);
    return resolved.weight.empty() ? std::string_view() : info_of(resolved.weight[0].dtype).name;
  };
  const struct {
    const char *tensor, *by_field, *replaced;
  } cases[] = {
      {"m.vision.up.weight", "", "int8"},    {"m.vision.weight", "", ""},
      {"m.audio.up.weight", "", ""},         {"m.gate.inner.weight", "", "int8"},
      {"m.a.k_proj.weight", "int4", "int3"}, {"m.b.k_proj.weight", "int8", "int3"},
      {"m.b.o_proj.weight", "int8", "int2"}, {"m.v.weight", "int8", ""},
      {"m.embed_tokens.weight", "", ""},     {"m.up.weight", "int8", "int8"},
  };
  for (const auto& row : cases) {
    CAPTURE(row.tensor);
    CHECK(dtype_of("field", row.tensor) == row.by_field);
    CHECK(dtype_of("replace", row.tensor) == row.replaced);
  }
  const Config config = resolve_config_of("{\"resolution\":\"replace\"," + std::string(kText));
  const Reason reason = Resolver(config).resolve("m.a.k_proj.weight", shape, true).reason;
  CHECK(reason.rule == Rule::layer_glob);
  CHECK(reason.where == "/kv_cache_quant_config/*k_proj/weight");
}

// The same questions with the config taken whole, regular expressions, lists of stages, classes that the config gives,
// and keys that decide nothing.
TEST_CASE("each tensor gets its spec: whole configs, classes, lists") {
  const Config config = resolve_config_of(R"({
    "resolution": "replace",
    "global_quant_config": {"weight": {"dtype": "int8"}},
    "layer_type_quant_config": {
      "Embedding": {"weight": {"dtype": "int16"}},
      "torch.nn.modules.conv.Conv2d": {},
      "ConvTranspose2d": {"weight": {"dtype": "int3"}}},
    "layer_quant_config": {
      "re:.*\\.layers\\.[02468]\\..*": {"weight": {"dtype": "uint4"}},
      "*.k_proj": {"input_tensors": {"dtype": "int8", "is_dynamic": true}},
      "*.v_proj": {"weight": [{"dtype": "fp8_e4m3"}, {"dtype": "int4", "qscheme": "per_channel", "ch_axis": 0}]},
      "m.layers.1.k_proj": {"weight": {"dtype": "int2"}},
      "m.layers.[!3].up": {"weight": {"dtype": "uint8"}}},
    "layer_types": {"*.weird_norm": "Linear", "up_conv": "ConvTranspose2d", "*.table": "Embedding", "*.gate": "Norm",
                    "ln": "LayerNorm", "re:^bag\\d$": "EmbeddingBag"},
    "kv_cache_quant_config": {"*.q_proj": {"output_tensors": {"dtype": "fp8_e4m3"}}},
    "exclude": ["re:.*\\.skip\\d+", "*.down"]})");
  const std::vector<uint64_t> m = {8, 8}, v = {8}, c = {8, 8, 3, 3};
  const ResolveCase cases[] = {
      {"m.layers.0.o_proj.weight", m, "uint4", "layer-glob",
       "/layer_quant_config/re:.*\\.layers\\.[02468]\\..*/weight"},
      {"m.layers.0.q_proj.weight", m, "", "layer-glob", "/kv_cache_quant_config/*.q_proj"},
      {"m.layers.10.o_proj.weight", m, "int8", "global", "/global_quant_config/weight"},
      {"m.layers.1.o_proj.weight", m, "int8", "global", "/global_quant_config/weight"},
      {"m.layers.0.k_proj.weight", m, "uint4", "layer-glob",
       "/layer_quant_config/re:.*\\.layers\\.[02468]\\..*/weight"},
      {"m.layers.3.k_proj.weight", m, "", "layer-glob", "/layer_quant_config/*.k_proj"},
      {"m.layers.1.k_proj.weight", m, "int2", "layer-name", "/layer_quant_config/m.layers.1.k_proj/weight"},
      {"m.layers.1.v_proj.weight", m, "fp8_e4m3", "layer-glob", "/layer_quant_config/*.v_proj/weight"},
      {"v_proj.weight", m, "int8", "global", "/global_quant_config/weight"},
      {"m.layers.5.up.weight", m, "uint8", "layer-glob", "/layer_quant_config/m.layers.[!3].up/weight"},
      {"m.layers.3.up.weight", m, "int8", "global", "/global_quant_config/weight"},
      {"m.embed_tokens.weight", m, "int16", "layer-type", "/layer_type_quant_config/Embedding/weight"},
      {"m.table.weight", m, "int16", "layer-type", "/layer_type_quant_config/Embedding/weight"},
      {"table.weight", m, "int8", "global", "/global_quant_config/weight"},
      {"bag1.weight", m, "", "no-config", ""},
      {"bag12.weight", m, "int8", "global", "/global_quant_config/weight"},
      {"stem.weight", c, "", "layer-type", "/layer_type_quant_config/Conv2d"},
      {"up_conv.weight", c, "int3", "layer-type", "/layer_type_quant_config/ConvTranspose2d/weight"},
      {"m.weird_norm.weight", m, "int8", "global", "/global_quant_config/weight"},
      {"m.other_norm.weight", m, "", "not-quantizable", ""},
      {"m.gate.weight", m, "", "not-quantizable", ""},
      {"gate.weight", m, "int8", "global", "/global_quant_config/weight"},
      {"ln.weight", v, "", "not-quantizable", ""},
      {"m.gate.bias", v, "", "not-a-weight", ""},
      {"m.skip1.weight", m, "", "excluded", "/exclude/0"},
      {"m.skipx.weight", m, "int8", "global", "/global_quant_config/weight"},
      {"m.layers.0.down.weight", m, "", "excluded", "/exclude/1"},
      {"m.layers.1.down.inner.weight", m, "int8", "global", "/global_quant_config/weight"},
  };
  Resolver resolver(config);
  for (const ResolveCase& row : cases) {
    CAPTURE(row.tensor);
    const Resolved resolved = resolver.resolve(row.tensor, row.shape, true);
    CHECK((!resolved.weight.empty() ? info_of(resolved.weight[0].dtype).name : "") == std::string_view(row.dtype));
    CHECK(name_of(resolved.reason.rule) == row.rule);
    CHECK(resolved.reason.where == row.where);
  }
  CHECK(resolver.resolve("m.layers.1.v_proj.weight", m, true).weight.size() == 2);
  CHECK(resolver.type_of("m.table", "Linear") == "Embedding");
  CHECK(config == resolve_config_of(json::write(config::to_json(config))));
}

TEST_CASE("excluding submodules of an excluded module changes nothing") {
  const auto excluded = [](const char* list) {
    const Config config =
        resolve_config_of(std::string(R"({"global_quant_config":{"weight":{"dtype":"int8"}},"exclude":)") + list + "}");
    Resolver resolver(config);
    std::string text;
    for (const char* layer : {"a", "a.b", "a.b.c", "ab", "x.a"}) text += resolver.excludes(layer) ? '1' : '0';
    return text;
  };
  CHECK(excluded(R"(["a"])") == "11100");
  CHECK(excluded(R"(["a", "a.*"])") == "11100");
  CHECK(excluded(R"(["a", "a.*", "a.*.*"])") == "11100");
  CHECK(excluded(R"(["a.*"])") == "01100");
}

TEST_CASE("aihwkit: a norm's weight is quantized if the config says that it is a LayerNorm") {
  const Config config = resolve_config_of(R"({"dialect":"aihwkit","module_qconfig_map":{"LayerNorm":{"module_qconfig":
      {"weight_quant":{"n_bits":8}}}},"layer_types":{"*.ln_1":"LayerNorm"}})");
  Resolver resolver(config);
  const std::vector<uint64_t> v = {8};
  CHECK(resolver.resolve("h.0.ln_1.weight", v, true).weight.size() == 1);
  CHECK(resolver.resolve("h.0.ln_2.weight", v, true).weight.empty());
}

TEST_CASE("brevitas: channels of transposed convolutions are on axis 1, and 3-D convolutions are left") {
  const Config config = resolve_config_of(
      R"({"dialect":"brevitas","global_quant_config":{"weight":{"qscheme":"per_channel"}},"pre_quant_opt_config":[],)"
      R"("layer_types":{"up":"ConvTranspose2d","line_up":"ConvTranspose1d","volume_up":"ConvTranspose3d"}})");
  Resolver resolver(config);
  const auto axis_of = [&](const char* tensor, const std::vector<uint64_t>& shape) {
    const Resolved found = resolver.resolve(tensor, shape, true);
    return found.weight.empty() ? int64_t{-1} : found.weight.front().ch_axis;
  };
  CHECK(axis_of("up.weight", {8, 4, 3, 3}) == 1);
  CHECK(axis_of("line_up.weight", {8, 4, 3}) == 1);
  CHECK(axis_of("down.weight", {8, 4, 3, 3}) == 0);
  CHECK(axis_of("volume_up.weight", {8, 4, 3, 3, 3}) == -1);
  CHECK(axis_of("volume.weight", {8, 4, 3, 3, 3}) == -1);
}

TEST_CASE("reasons read as sentences") {
  const Config config = resolve_config_of(kLevels);
  Resolver resolver(config);
  const auto text = [&](std::string_view tensor) {
    return resolver.resolve(tensor, std::vector<uint64_t>{8, 8}, true).reason.text;
  };
  CHECK(text("a.up.weight") == "global_quant_config");
  CHECK(text("a.q_proj.weight") == "pattern \"*.q_proj\" of layer_quant_config is the first that matches this layer");
  CHECK(text("model.layers.1.self_attn.q_proj.weight") ==
        "entry \"model.layers.1.self_attn.q_proj\" of layer_quant_config names this layer");
  CHECK(text("embed_tokens.weight") == "entry \"Embedding\" of layer_type_quant_config covers layers of this class");
  CHECK(text("lm_head.weight") == "excluded by \"lm_head\"");
  CHECK(text("model.vision.a.weight") == "excluded by \"model.vision\", which covers everything below it");
  CHECK(text("a.bias") == "biases stay as they are");
  CHECK(json::write(to_json(Reason{Rule::layer_glob, "/a", "b"})) ==
        R"({"rule":"layer-glob","where":"/a","text":"b"})");
}

TEST_CASE("diagnostics of a config inside a config.json point into that file") {
  const Config config = resolve_config_of(
      R"({"model_type":"llama","quantization_config":{"global_quant_config":{"weight":{"dtype":"int8"}},"exclude":["h"],"quant_method":"quark"}})");
  Resolver resolver(config);
  const std::vector<uint64_t> shape = {8, 8};
  CHECK(resolver.resolve("a.weight", shape, true).reason.where == "/quantization_config/global_quant_config/weight");
  CHECK(resolver.resolve("h.weight", shape, true).reason.where == "/quantization_config/exclude/0");
}

TEST_CASE("patterns that matched nothing are reported with the nearest layer") {
  const Config config = resolve_config_of(R"({
    "global_quant_config": {"weight": {"dtype": "int8"}},
    "layer_type_quant_config": {"Conv2d": {"weight": {"dtype": "int8"}}, "Linear": {"weight": {"dtype": "int8"}}},
    "layer_quant_config": {"*.q_porj": {}, "*.norm": {}, "*.up_proj": {}, "m.l0.up_prjo": {}},
    "exclude": ["lm_head", "m.l0.up_proj.weight", "*.norm", "m.l0.up_proj", "*.zzzzz"]})");
  Resolver resolver(config);
  const std::vector<uint64_t> m = {8, 8}, v = {8};
  resolver.resolve("m.l0.q_proj.weight", m, true);
  resolver.resolve("m.l0.q_proj.bias", v, true);
  resolver.resolve("m.l0.up_proj.weight", m, true);
  resolver.resolve("m.l0.norm.weight", v, true);
  std::string text;
  for (const Diagnostic& d : resolver.unused_patterns()) {
    CHECK(d.code == "pattern-unused");
    CHECK(d.severity == Severity::warning);
    text += d.where + " | " + d.message + " | " + d.hint + "\n";
  }
  CHECK(text ==
        "/exclude/0 | \"lm_head\" matches no layer of this model | \n"
        "/exclude/1 | \"m.l0.up_proj.weight\" matches no layer of this model | give names of layers, without "
        ".weight\n"
        "/exclude/4 | \"*.zzzzz\" matches no layer of this model | \n"
        "/layer_quant_config/*.q_porj | \"*.q_porj\" matches no layer of this model | the nearest layer is "
        "\"m.l0.q_proj\"\n"
        "/layer_quant_config/*.norm | \"*.norm\" matches only layers that are never quantized | \n"
        "/layer_quant_config/m.l0.up_prjo | \"m.l0.up_prjo\" matches no layer of this model | did you mean "
        "\"m.l0.up_proj\"?\n"
        "/layer_type_quant_config/Conv2d | \"Conv2d\" is the class of no layer of this model | \n");

  const Config preset = resolve_config_of("int8");
  Resolver of_preset(preset);
  of_preset.resolve("a.weight", m, true);
  CHECK(of_preset.unused_patterns().empty());

  // What a person adds to a preset may be a slip.
  const Config edited =
      resolve_config_of(R"({"global_quant_config": {"weight": {"dtype": "int8"}}, "default_exclusions": true,
    "exclude": ["lm_head", "visal.*"]})");
  Resolver of_edited(edited);
  of_edited.resolve("a.weight", m, true);
  const auto warnings = of_edited.unused_patterns();
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0].where == "/exclude/1");
  CHECK(warnings[0].severity == Severity::warning);
}

TEST_CASE("default exclusions yield to rules that name a layer, and do not apply to casts") {
  const families::ModelFamily family;
  const transformers::DefaultExclusions exclusions(family, {});
  const std::vector<uint64_t> m = {8, 8};
  const auto rule_of = [&](const Config& config, const char* tensor) {
    return name_of(Resolver(config, &exclusions).resolve(tensor, m, true).reason.rule);
  };
  const Config preset = resolve_config_of("int8");
  CHECK(rule_of(preset, "l.0.mlp.gate.weight") == "default-exclusion");
  CHECK(rule_of(preset, "l.0.mlp.gate_proj.weight") == "global");
  CHECK(rule_of(resolve_config_of("bfloat16"), "l.0.mlp.gate.weight") == "global");
  const Config named =
      resolve_config_of(R"({"global_quant_config": {"weight": {"dtype": "int8"}}, "default_exclusions": true,
    "layer_quant_config": {"*.mlp.gate": {"weight": {"dtype": "int16"}}, "*": {"weight": {"dtype": "int4"}},
                           "l.1.router": {"weight": {"dtype": "int16"}}}})");
  CHECK(rule_of(named, "l.0.mlp.gate.weight") == "layer-glob");
  CHECK(rule_of(named, "l.1.router.weight") == "layer-name");
  CHECK(rule_of(named, "l.0.router.weight") == "default-exclusion");
  CHECK(rule_of(named, "l.0.up.weight") == "layer-glob");
  const Config plain = resolve_config_of(R"({"global_quant_config": {"weight": {"dtype": "int8"}}})");
  CHECK(rule_of(plain, "l.0.mlp.gate.weight") == "global");
}

TEST_CASE("the product of patterns and tensors is limited; names without wildcards do not count") {
  const auto fits = [](std::string_view exclude, uint64_t tensors) {
    const Config config = resolve_config_of("{\"global_quant_config\":{\"weight\":{\"dtype\":\"int8\"}},\"exclude\":[" +
                                            std::string(exclude) + "]}");
    const Status status = check_patterns(config, tensors);
    return bool(status) || status.error().code != ErrorCode::config_invalid;
  };
  constexpr uint64_t kMost = uint64_t{1} << 29;
  CHECK(fits(R"("a*", "*b")", kMost / 2));
  CHECK_FALSE(fits(R"("a*", "*b")", kMost / 2 + 1));
  CHECK(fits(R"("re:a.*")", kMost / 32));
  CHECK_FALSE(fits(R"("re:a.*")", kMost / 32 + 1));
  CHECK(fits(R"("lm_head")", uint64_t{1} << 40));
}
