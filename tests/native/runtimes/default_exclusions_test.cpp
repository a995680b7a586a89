// Which layers presets leave alone, by name, class and family.
#include "runtimes/transformers/default_exclusions.h"

#include <doctest/doctest.h>

#include <string>

#include "families/module_path.h"

using namespace wasmquant::families;
using namespace wasmquant::transformers;

namespace {

ModelFamily default_exclusions_family_of(const char* config) {
  const auto document = *config == 0 ? wasmquant::Result<wasmquant::json::Value>(wasmquant::json::Value())
                                     : wasmquant::json::parse(config);
  REQUIRE(bool(document));
  return ModelFamily::read(*document);
}

std::string row_of(const ModelFamily& family, std::string_view layer, std::string_view type = "Linear",
                   DefaultExclusions::Rows rows = {}) {
  const DefaultExclusions exclusions(family, rows);
  const DefaultExclusion* const row = exclusions.find(layer, type);
  return row == nullptr ? std::string() : std::string(row->id);
}

}  // namespace

TEST_CASE("each row matches its layers and no others") {
  const ModelFamily llm =
      default_exclusions_family_of(R"({"architectures": ["XForCausalLM"], "num_hidden_layers": 4})");
  const struct {
    const char *layer, *type, *row;
  } cases[] = {
      {"model.layers.0.mlp.gate", "Linear", "router"},
      {"model.layers.0.mlp.gate_proj", "Linear", ""},
      {"model.layers.0.mlp.gate.wg", "Linear", "router"},
      {"model.layers.0.mlp.shared_expert_gate", "Linear", "router"},
      {"model.layers.0.mlp.shared_expert.gate_proj", "Linear", ""},
      {"model.layers.0.router.proj", "Linear", "router"},
      {"model.layers.0.block_sparse_moe.router.layer", "Linear", "router"},
      {"model.layers.0.linear_attn.conv1d", "Conv1d", "convolution"},
      {"patch_embed.proj", "Conv3d", "convolution"},
      {"model.layers.0.mamba.dt_proj", "Linear", "state_space"},
      {"model.layers.0.mamba.in_proj", "Linear", ""},
      {"model.visual.blocks.0.attn.qkv", "Linear", "tower"},
      {"visual.merger.mlp.0", "Linear", "tower"},
      {"multi_modal_projector.linear_1", "Linear", "tower"},
      {"mtp.layers.0.mlp.up_proj", "Linear", "multi_token_prediction"},
      {"model.layers.4.eh_proj", "Linear", "multi_token_prediction"},
      {"model.layers.3.self_attn.q_proj", "Linear", ""},
      {"embed_out", "Linear", "head"},
      {"cls.predictions.decoder", "Linear", "head"},
      {"model.decoder.layers.0.fc1", "Linear", ""},
      {"model.layers.0.mlp.experts.7.down_proj", "Linear", "expert"},
      {"model.layers.0.mlp.experts.down_proj", "Experts", "expert"},
      {"model.layers.0.mlp.shared_experts.down_proj", "Linear", ""},
      {"transformer.h.0.attn.c_attn", "Conv1D", "input_major"},
      {"embeddings.patch_embedding", "Linear", "patch_embedding"},
      {"model.layers.0.attn.Wqkv", "Linear", ""},
  };
  for (const auto& c : cases) {
    CAPTURE(c.layer);
    CHECK(row_of(llm, c.layer, c.type, {.expert = "for a reason"}) == c.row);
  }
  CHECK(row_of(default_exclusions_family_of(R"({"model_type": "nomic_bert"})"), "encoder.layers.0.attn.Wqkv") ==
        "rearranged_on_loading");
  const ModelFamily hrm = default_exclusions_family_of(R"({"model_type": "hrm_text"})");
  CHECK(row_of(hrm, "model.H_module.layers.0.mlp.gate_up_proj") == "split_on_loading");
  CHECK(row_of(hrm, "model.H_module.layers.0.mlp.gate_up_proj", "Linear", {.input_major = false}) == "");
  CHECK(row_of(hrm, "model.H_module.layers.0.mlp.gate_up_proj", "Linear", {.split = false}) == "");
  CHECK(row_of(llm, "model.layers.0.mlp.gate_up_proj") == "");
  const ModelFamily ibert = default_exclusions_family_of(R"({"model_type": "ibert"})");
  CHECK(row_of(ibert, "ibert.encoder.layer.0.output.dense") == "own_linear");
  const ModelFamily deepseek =
      default_exclusions_family_of(R"({"architectures": ["DeepseekV4ForCausalLM"], "model_type": "deepseek_v4"})");
  CHECK(row_of(deepseek, "head") == "head");
  CHECK(row_of(llm, "head") == "");
  CHECK(row_of(default_exclusions_family_of(R"({"model_type": "colpali"})"), "embedding_proj_layer") ==
        "read_on_loading");
  const ModelFamily speech = default_exclusions_family_of(R"({"model_type": "wav2vec2"})");
  CHECK(row_of(speech, "wav2vec2.feature_projection.projection") == "read_on_loading");
  CHECK(row_of(speech, "wav2vec2.encoder.layers.0.attention.k_proj") == "");
  CHECK(row_of(llm, "model.decoder.bbox_embed.0.layers.1") == "detection_head");
  CHECK(row_of(llm, "model.layers.0.mlp.experts.7.down_proj") == "");
  CHECK(row_of(llm, "transformer.h.0.attn.c_attn", "Conv1D", {.input_major = false}) == "");
  CHECK(row_of(llm, "model.visual.blocks.0.attn.qkv", "Linear", {.tower = false}) == "");
}

TEST_CASE("image encoders are towers only next to a language model") {
  const ModelFamily clip = default_exclusions_family_of(R"({"architectures": ["CLIPModel"], "model_type": "clip"})");
  CHECK(row_of(clip, "vision_model.encoder.layers.0.mlp.fc1") == "");
  const ModelFamily llava = default_exclusions_family_of(R"({"architectures": ["LlavaForConditionalGeneration"]})");
  CHECK(row_of(llava, "vision_model.encoder.layers.0.mlp.fc1") == "tower");
  CHECK(row_of(default_exclusions_family_of(""), "vision_tower.encoder.layers.0.mlp.fc1") == "tower");
  const ModelFamily colpali = default_exclusions_family_of(R"({"architectures": ["ColPaliForRetrieval"]})");
  CHECK(row_of(colpali, "vlm.vision_tower.vision_model.encoder.layers.0.mlp.fc1") == "tower");
}

TEST_CASE("a layer can be in a tower that only its name in the loaded model reveals") {
  const ModelFamily model = default_exclusions_family_of(
      R"({"model_type": "deepseek_ocr2", "architectures": ["DeepseekOcr2ForConditionalGeneration"]})");
  CHECK(row_of(model, "model.qwen2_model.model.model.layers.0.mlp.up_proj") == "tower");
  CHECK(row_of(model, "model.qwen2_model.query_768") == "tower");
  CHECK(row_of(model, "model.layers.0.mlp.up_proj").empty());
}

TEST_CASE("a layer's number is compared only with the decoder's") {
  const ModelFamily bart = default_exclusions_family_of(
      R"({"architectures": ["BartForConditionalGeneration"], "num_hidden_layers": 2, "decoder_layers": 6})");
  CHECK(row_of(bart, "model.decoder.layers.5.fc1") == "");
  const ModelFamily nested = default_exclusions_family_of(
      R"({"architectures": ["XForCausalLM"], "text_config": {"model_type": "x_text", "num_hidden_layers": 2}})");
  CHECK(nested.is("x_text"));
  CHECK(row_of(nested, "model.language_model.layers.2.eh_proj") == "multi_token_prediction");
}

TEST_CASE("a pattern names a row if it contains one of the row's words") {
  const ModelFamily llm = default_exclusions_family_of(R"({"architectures": ["XForCausalLM"]})");
  const DefaultExclusions exclusions(llm, {.expert = "for a reason"});
  const DefaultExclusion* const expert = exclusions.find("mlp.experts.0.down_proj", "Linear");
  REQUIRE(expert != nullptr);
  CHECK(expert->text == "for a reason");
  CHECK(names_row(*expert, "*.experts.*"));
  CHECK_FALSE(names_row(*expert, "*.down_proj"));
  const DefaultExclusion* const convolution = exclusions.find("conv1", "Conv2d");
  REQUIRE(convolution != nullptr);
  CHECK(names_row(*convolution, "model.conv*"));
  CHECK_FALSE(names_row(*convolution, "*"));
  const ModelFamily nomic = default_exclusions_family_of(R"({"model_type": "nomic_bert"})");
  const DefaultExclusions of_nomic(nomic, {});
  const DefaultExclusion* const split = of_nomic.find("encoder.layers.0.attn.Wqkv", "Linear");
  REQUIRE(split != nullptr);
  CHECK(names_row(*split, "*.Wqkv"));
  CHECK_FALSE(names_row(*split, "nomic_bert*"));
}

TEST_CASE("parts of module names") {
  CHECK(last_component("a.b.c") == "c");
  CHECK(last_component("c") == "c");
  CHECK(has_component("a.b.c", "b"));
  CHECK_FALSE(has_component("a.bb.c", "b"));
  CHECK(ends_with_components("x.mlp.gate", "mlp.gate"));
  CHECK_FALSE(ends_with_components("xmlp.gate", "mlp.gate"));
  CHECK(layer_index_of("model.layers.12.mlp") == 12);
  CHECK(layer_index_of("transformer.h.3.attn") == 3);
  CHECK(layer_index_of("model.layers.x.mlp") == -1);
  CHECK(layer_index_of("") == -1);
}
