// Names that transformers gives to modules, against those that it printed for tiny checkpoints of each family.
#include "families/loader_names.h"

#include <doctest/doctest.h>

#include <algorithm>

using namespace wasmquant::families;

namespace {

ModelFamily family_of(std::string type, std::string architecture = "") {
  ModelFamily family;
  family.model_type = std::move(type);
  family.architecture = std::move(architecture);
  return family;
}

bool ties(const char* architecture, std::string_view head) {
  const auto heads = tied_heads(family_of("", architecture));
  return std::find(heads.begin(), heads.end(), head) != heads.end();
}

}  // namespace

TEST_CASE("renamed on loading") {
  const struct {
    const char *type, *file, *loader;
  } cases[] = {
      {"qwen2_vl", "visual.blocks.0.attn.qkv", "model.visual.blocks.0.attn.qkv"},
      {"qwen2_5_vl", "model.layers.0.mlp.up_proj", "model.language_model.layers.0.mlp.up_proj"},
      {"qwen2_vl", "model.visual.blocks.0.attn.qkv", "model.visual.blocks.0.attn.qkv"},
      {"qwen2_vl", "lm_head", "lm_head"},
      {"llava", "language_model.lm_head", "lm_head"},
      {"mistral3", "language_model.model.layers.1.mlp.up_proj", "model.language_model.layers.1.mlp.up_proj"},
      {"gemma3", "vision_tower.vision_model.encoder.layers.0.mlp.fc1", "model.vision_tower.encoder.layers.0.mlp.fc1"},
      {"vit", "vit.encoder.layer.0.attention.attention.query", "vit.layers.0.attention.q_proj"},
      {"vit", "vit.encoder.layer.0.attention.output.dense", "vit.layers.0.attention.o_proj"},
      {"vit", "vit.encoder.layer.0.output.dense", "vit.layers.0.mlp.fc2"},
      {"phimoe", "model.layers.0.block_sparse_moe.gate", "model.layers.0.mlp.router"},
      {"nemotron_h", "backbone.layers.0.mixer.in_proj", "model.layers.0.mixer.in_proj"},
      {"llama", "model.layers.0.mlp.up_proj", "model.layers.0.mlp.up_proj"},
      {"", "visual.blocks.0.attn.qkv", "visual.blocks.0.attn.qkv"},
  };
  for (const auto& c : cases) {
    CAPTURE(c.file);
    CHECK(loader_name(family_of(c.type), c.file) == c.loader);
  }
}

TEST_CASE("the prefix of a model below a head is added and removed") {
  CHECK(loader_name(family_of("bloom", "BloomForCausalLM"), "h.0.mlp.dense_h_to_4h") ==
        "transformer.h.0.mlp.dense_h_to_4h");
  CHECK(loader_name(family_of("bert", "BertModel"), "bert.encoder.layer.0.output.dense") ==
        "encoder.layer.0.output.dense");
  CHECK(loader_name(family_of("bert", "BertForMaskedLM"), "bert.encoder.layer.0.output.dense") ==
        "bert.encoder.layer.0.output.dense");
  CHECK(loader_name(family_of("qwen3", "Qwen3ForCausalLM"), "layers.0.mlp.up_proj") == "model.layers.0.mlp.up_proj");
  CHECK(loader_name(family_of("qwen3", "Qwen3Model"), "model.layers.0.mlp.up_proj") == "layers.0.mlp.up_proj");
  CHECK(loader_name(family_of("qwen3", "Qwen3ForCausalLM"), "lm_head") == "lm_head");
}

TEST_CASE("heads that may be tied, by class") {
  CHECK(ties("LlamaForCausalLM", "lm_head"));
  CHECK(ties("GPT2LMHeadModel", "lm_head"));
  CHECK(ties("T5ForConditionalGeneration", "lm_head"));
  CHECK(ties("BertForMaskedLM", "cls.predictions.decoder"));
  CHECK(ties("XLMRobertaForMaskedLM", "lm_head.decoder"));
  CHECK(ties("ModernBertForMaskedLM", "decoder"));
  CHECK(ties("WhisperForConditionalGeneration", "proj_out"));
  CHECK_FALSE(ties("LlamaForCausalLM", "decoder"));
  CHECK(tied_heads(family_of("bert", "BertModel")).empty());
  CHECK(tied_heads(ModelFamily()).empty());
}

TEST_CASE("classes that read weights while they load") {
  CHECK(needs_plain_weight(family_of("t5"), "encoder.block.0.layer.0.SelfAttention.q"));
  CHECK(needs_plain_weight(family_of("gpt_bigcode"), "transformer.h.0.attn.c_proj"));
  CHECK_FALSE(needs_plain_weight(family_of("gpt_bigcode"), "transformer.h.0.attn.c_attn"));
  CHECK(needs_plain_weight(family_of("llava"), "vision_tower.encoder.layers.0.mlp.fc1"));
  CHECK_FALSE(needs_plain_weight(family_of("llava"), "language_model.layers.0.mlp.up_proj"));
  CHECK_FALSE(needs_plain_weight(family_of("llama"), "model.layers.0.mlp.up_proj"));
  CHECK_FALSE(needs_plain_weight(ModelFamily(), "x"));
}
