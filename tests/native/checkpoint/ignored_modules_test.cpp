// The modules that a quantized file tells its loader to leave alone.
#include "tools/compressed_tensors/ignored_modules.h"

#include <doctest/doctest.h>

using namespace wasmquant;

namespace {

LayerPlan layer_of(const char* name, bool is_quantized, const char* loader_name = "", const char* type = "Linear") {
  LayerPlan layer{name, type, {}, {}, {}, loader_name};
  if (is_quantized) layer.weight = Stages(1);
  return layer;
}

std::string ignored(const List<LayerPlan>& layers, const char* config = "") {
  const auto document = *config == 0 ? Result<json::Value>(json::Value()) : json::parse(config);
  REQUIRE(bool(document));
  return json::write(ignored_modules(layers, families::ModelFamily::read(*document)));
}

}  // namespace

TEST_CASE("kept layers are listed by both of their names, embeddings and quantized layers not at all") {
  CHECK(ignored({layer_of("model.layers.0.up_proj", true), layer_of("model.layers.1.up_proj", false),
                 layer_of("h.0.mlp.up", false, "transformer.h.0.mlp.up"),
                 layer_of("model.embed_tokens", false, "", "Embedding")}) ==
        R"(["model.layers.1.up_proj","h.0.mlp.up","transformer.h.0.mlp.up"])");
}

TEST_CASE("a tower is one pattern as long as all of it is kept") {
  const LayerPlan first = layer_of("visual.blocks.0.attn.qkv", false, "model.visual.blocks.0.attn.qkv"),
                  second = layer_of("visual.blocks.1.attn.qkv", false, "model.visual.blocks.1.attn.qkv");
  CHECK(ignored({first, second}) == R"(["re:(.*\\.)?visual\\..*"])");
  CHECK(ignored({first, layer_of("visual.blocks.1.attn.qkv", true)}) ==
        R"(["visual.blocks.0.attn.qkv","model.visual.blocks.0.attn.qkv"])");
}

TEST_CASE("a tower that the loader renames is listed by both of its names") {
  CHECK(ignored({layer_of("vision_model.blocks.0.attn.qkv", false, "vision_tower.blocks.0.attn.qkv")}) ==
        R"(["re:(.*\\.)?vision_model\\..*","re:(.*\\.)?vision_tower\\..*"])");
  CHECK(ignored({layer_of("mlp_AR.linear_1", false, "model.projector.linear_1")}) ==
        R"(["re:(.*\\.)?mlp_AR\\..*","re:(.*\\.)?projector\\..*"])");
}

TEST_CASE("detection heads are one pattern, because the loader has more of them than the file") {
  CHECK(ignored({layer_of("class_embed.0", false), layer_of("bbox_embed.0.layers.0", false)}) ==
        R"(["re:(.*\\.)?class_embed\\..*","re:(.*\\.)?bbox_embed\\..*"])");
  CHECK(ignored({layer_of("class_embed", false)}) == R"(["class_embed"])");
}

TEST_CASE("layers that the loader splits are named as their parts are") {
  CHECK(ignored({layer_of("encoder.layers.0.attn.Wqkv", false)}, R"({"model_type": "nomic_bert"})") ==
        R"(["re:(.*\\.)?self_attn\\.q_proj$","re:(.*\\.)?self_attn\\.k_proj$","re:(.*\\.)?self_attn\\.v_proj$"])");
  CHECK(ignored({layer_of("model.H_module.layers.0.attn.gqkv_proj", false),
                 layer_of("model.H_module.layers.0.mlp.gate_up_proj", false)},
                R"({"model_type": "hrm_text"})") ==
        R"(["re:(.*\\.)?self_attn\\.gate_proj$","re:(.*\\.)?self_attn\\.q_proj$","re:(.*\\.)?self_attn\\.k_proj$",)"
        R"("re:(.*\\.)?self_attn\\.v_proj$","re:(.*\\.)?mlp\\.gate_proj$","re:(.*\\.)?mlp\\.up_proj$"])");
}

TEST_CASE("experts, single and in one tensor") {
  CHECK(ignored({layer_of("model.layers.0.mlp.experts.0.up_proj", false),
                 layer_of("model.layers.1.mlp.experts.0.up_proj", false),
                 layer_of("model.layers.0.mlp.shared_experts.up_proj", false)}) ==
        R"(["re:(.*\\.)?experts\\..*","model.layers.0.mlp.shared_experts.up_proj"])");
  CHECK(ignored({layer_of("model.layers.0.mlp.experts.gate_up_proj", false, "", "Experts")}) ==
        R"(["re:(.*\\.)?experts\\..*"])");
}

TEST_CASE("heads that have no tensor are named by the class; those that have one are not named twice") {
  constexpr const char* kBert = R"({"architectures": ["BertForMaskedLM"]})";
  CHECK(ignored({layer_of("bert.pooler.dense", true)}, kBert) == R"(["cls.predictions.decoder","lm_head.decoder"])");
  constexpr const char* kLlama = R"({"architectures": ["LlamaForCausalLM"]})";
  CHECK(ignored({layer_of("lm_head", false)}, kLlama) == R"(["lm_head"])");
  CHECK(ignored({layer_of("lm_head", true)}, kLlama) == "[]");
  CHECK(ignored({layer_of("language_model.lm_head", true, "lm_head")}, kLlama) == "[]");
  CHECK(ignored({}, kLlama) == R"(["lm_head"])");
}
