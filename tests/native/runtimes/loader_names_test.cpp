// Names that transformers gives to modules, against those that it printed for tiny checkpoints of each family.
#include "runtimes/transformers/loader_names.h"

#include <doctest/doctest.h>

#include <algorithm>

using namespace wasmquant::families;
using namespace wasmquant::transformers;

namespace {

ModelFamily loader_names_family_of(std::string type, std::string architecture = "") {
  ModelFamily family;
  family.model_type = std::move(type);
  family.architecture = std::move(architecture);
  return family;
}

bool ties(const char* architecture, std::string_view head) {
  const auto heads = tied_heads(loader_names_family_of("", architecture));
  return std::find(heads.begin(), heads.end(), head) != heads.end();
}

}  // namespace

TEST_CASE("names that the loader changes") {
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
      {"hy_v3", "model.layers.1.mlp.shared_mlp.up_proj", "model.layers.1.mlp.shared_experts.up_proj"},
      {"deepseek_v4", "head", "lm_head"},
      {"deepseek_v4", "layers.0.attn.wq_a", "model.layers.0.self_attn.q_a_proj"},
      {"deepseek_v4", "layers.2.attn.indexer.compressor.wkv", "model.layers.2.self_attn.compressor.indexer.kv_proj"},
      {"deepseek_v4", "layers.0.ffn.shared_experts.w2", "model.layers.0.mlp.shared_experts.down_proj"},
      {"mllama", "multi_modal_projector", "model.multi_modal_projector"},
      {"paddleocr_vl", "mlp_AR.linear_1", "model.projector.linear_1"},
      {"paddleocr_vl", "model.layers.0.mlp.up_proj", "model.language_model.layers.0.mlp.up_proj"},
      {"ernie4_5_vl_moe", "model.vision_model.blocks.0.mlp.fc1", "model.vision_tower.blocks.0.mlp.fc1"},
      {"emu3", "text_model.model.layers.0.mlp.up_proj", "model.text_model.layers.0.mlp.up_proj"},
      {"axk2", "model.layers.0.self_attn.q_b_proj", "model.layers.0.self_attn.q_gate_proj"},
      {"radio", "radio_model.model.patch_generator.embedder", "embeddings.patch_projection"},
      {"cohere_asr", "log_softmax.mlp.layer0", "proj_out"},
      {"exaone", "transformer.h.0.attn.attention.out_proj", "model.layers.0.self_attn.o_proj"},
      {"segformer", "segformer.encoder.block.2.10.attention.output.dense",
       "segformer.stages.2.blocks.10.attention.o_proj"},
      {"segformer", "segformer.encoder.layer_norm.3", "segformer.stages.3.layer_norm"},
      {"segformer", "decode_head.linear_c.0.proj", "decode_head.linear_projections.0.proj"},
      {"deepseek_ocr2", "model.qwen2_model.model.model.layers.1.mlp.up_proj",
       "model.vision_tower.vision_encoder.layers.1.mlp.up_proj"},
      {"deepseek_ocr2", "model.sam_model.blocks.3.attn.qkv", "model.vision_tower.sam_encoder.layers.3.attn.qkv"},
      {"deepseek_ocr2", "model.layers.0.mlp.gate", "model.language_model.layers.0.mlp.gate"},
      {"llama", "model.layers.0.mlp.up_proj", "model.layers.0.mlp.up_proj"},
      {"", "visual.blocks.0.attn.qkv", "visual.blocks.0.attn.qkv"},
  };
  for (const auto& c : cases) {
    CAPTURE(c.file);
    CHECK(loader_name(loader_names_family_of(c.type), c.file) == c.loader);
  }
}

TEST_CASE("the prefix of a model below a head is added and removed") {
  CHECK(loader_name(loader_names_family_of("bloom", "BloomForCausalLM"), "h.0.mlp.dense_h_to_4h") ==
        "transformer.h.0.mlp.dense_h_to_4h");
  CHECK(loader_name(loader_names_family_of("bert", "BertModel"), "bert.encoder.layer.0.output.dense") ==
        "encoder.layer.0.output.dense");
  CHECK(loader_name(loader_names_family_of("bert", "BertForMaskedLM"), "bert.encoder.layer.0.output.dense") ==
        "bert.encoder.layer.0.output.dense");
  CHECK(loader_name(loader_names_family_of("qwen3", "Qwen3ForCausalLM"), "layers.0.mlp.up_proj") ==
        "model.layers.0.mlp.up_proj");
  CHECK(loader_name(loader_names_family_of("qwen3", "Qwen3Model"), "model.layers.0.mlp.up_proj") ==
        "layers.0.mlp.up_proj");
  CHECK(loader_name(loader_names_family_of("qwen3", "Qwen3ForCausalLM"), "lm_head") == "lm_head");
}

TEST_CASE("parts of a model are renamed by the rules of their types") {
  ModelFamily captions = loader_names_family_of("vision-encoder-decoder", "VisionEncoderDecoderModel");
  captions.model_types = {"vision-encoder-decoder", "vit", "bert"};
  CHECK(loader_name(captions, "encoder.encoder.layer.0.output.dense") == "encoder.layers.0.mlp.fc2");
  CHECK(loader_name(captions, "decoder.bert.encoder.layer.0.output.dense") ==
        "decoder.bert.encoder.layer.0.output.dense");
  ModelFamily depth = loader_names_family_of("depth_anything", "DepthAnythingForDepthEstimation");
  depth.model_types = {"depth_anything", "dinov2"};
  CHECK(loader_name(depth, "backbone.encoder.layer.0.attention.attention.query") ==
        "backbone.encoder.layer.0.attention.q_proj");
  ModelFamily words = loader_names_family_of("mistral_large4", "MistralLarge4ForConditionalGeneration");
  words.text_model_type = "mistral_large4_text";
  words.model_types = {"mistral_large4", "mistral_large4_text", "pixtral"};
  CHECK(loader_name(words, "layers.0.attention.wo") == "model.language_model.layers.0.self_attn.o_proj");
  CHECK(loader_name(words, "vision_encoder.transformer.layers.0.attention.wo") ==
        "model.vision_tower.transformer.layers.0.attention.o_proj");
}

TEST_CASE("heads that may be tied, by class") {
  CHECK(ties("LlamaForCausalLM", "lm_head"));
  CHECK(ties("GPT2LMHeadModel", "lm_head"));
  CHECK(ties("T5ForConditionalGeneration", "lm_head"));
  CHECK(ties("BertForMaskedLM", "cls.predictions.decoder"));
  CHECK(ties("XLMRobertaForMaskedLM", "lm_head.decoder"));
  CHECK(ties("ModernBertForMaskedLM", "decoder"));
  CHECK(ties("WhisperForConditionalGeneration", "proj_out"));
  CHECK(ties("CanaryForConditionalGeneration", "proj_out"));
  CHECK(ties("GraniteSpeech5ForCTC", "ctc_head"));
  CHECK(ties("FunnelForMaskedLM", "lm_head"));
  CHECK(ties("Blip2ForConditionalGeneration", "language_model.lm_head"));
  CHECK(ties("VisionEncoderDecoderModel", "decoder.output_projection"));
  CHECK_FALSE(ties("LlamaForCausalLM", "decoder"));
  CHECK(tied_heads(loader_names_family_of("bert", "BertModel")).empty());
  CHECK(tied_heads(ModelFamily()).empty());
}

TEST_CASE("tensors that keep the dtype of the file") {
  CHECK(is_converted(loader_names_family_of("esm"), "esm.encoder.layer.0.LayerNorm.gamma"));
  CHECK(is_converted(loader_names_family_of("wav2vec2"), "wav2vec2.encoder.pos_conv_embed.conv.weight_g"));
  CHECK(is_converted(loader_names_family_of("olmo_hybrid"), "model.layers.0.attention_layer_norm"));
  CHECK(is_converted(loader_names_family_of("bloom", "BloomForCausalLM"), "word_embeddings_layernorm"));
  CHECK_FALSE(is_converted(loader_names_family_of("bloom", "BloomForCausalLM"), "transformer.ln_f"));
  CHECK(is_converted(loader_names_family_of("bert", "BertForMaskedLM"), "embeddings.word_embeddings"));
  CHECK(is_converted(loader_names_family_of("qwen3", "Qwen3ForCausalLM"), "norm"));
  CHECK(is_converted(loader_names_family_of("swin"),
                     "swin.encoder.layers.0.blocks.0.attention.self.relative_position_bias_table"));
  CHECK_FALSE(is_converted(loader_names_family_of("esm"), "esm.encoder.layer.0.output.dense"));
}

TEST_CASE("classes that read weights while they load") {
  CHECK(needs_plain_weight(loader_names_family_of("longt5"), "encoder.block.0.layer.0.SelfAttention.q"));
  CHECK(needs_plain_weight(loader_names_family_of("nanochat"), "model.layers.0.self_attn.o_proj"));
  CHECK_FALSE(needs_plain_weight(loader_names_family_of("nanochat"), "model.layers.0.self_attn.q_proj"));
  CHECK(needs_plain_weight(loader_names_family_of("t5"), "encoder.block.0.layer.0.SelfAttention.q"));
  CHECK(needs_plain_weight(loader_names_family_of("gpt_bigcode"), "transformer.h.0.attn.c_proj"));
  CHECK_FALSE(needs_plain_weight(loader_names_family_of("gpt_bigcode"), "transformer.h.0.attn.c_attn"));
  CHECK(needs_plain_weight(loader_names_family_of("gemma3"), "vision_tower.encoder.layers.0.mlp.fc1"));
  CHECK_FALSE(needs_plain_weight(loader_names_family_of("llava"), "language_model.layers.0.mlp.up_proj"));
  CHECK(needs_plain_weight(loader_names_family_of("wav2vec2"), "wav2vec2.feature_projection.projection"));
  CHECK_FALSE(needs_plain_weight(loader_names_family_of("wav2vec2"), "wav2vec2.encoder.layers.0.attention.k_proj"));
  CHECK_FALSE(needs_plain_weight(loader_names_family_of("clip"), "text_model.encoder.layers.0.mlp.fc1"));
  CHECK_FALSE(needs_plain_weight(loader_names_family_of("llama"), "model.layers.0.mlp.up_proj"));
  CHECK(needed_plain_weight(loader_names_family_of("clip"), "text_model.encoder.layers.0.mlp.fc1"));
  CHECK_FALSE(needed_plain_weight(loader_names_family_of("llama"), "model.layers.0.mlp.up_proj"));
  CHECK_FALSE(needs_plain_weight(ModelFamily(), "x"));
  ModelFamily speech = loader_names_family_of("speech-encoder-decoder", "SpeechEncoderDecoderModel");
  speech.model_types = {"speech-encoder-decoder", "mimi", "bert"};
  CHECK(needs_plain_weight(speech, "encoder.encoder.layers.0.attention.q_proj"));
  ModelFamily words = loader_names_family_of("phi4_multimodal", "Phi4MultimodalForCausalLM");
  words.model_types = {"phi4_multimodal", "phi4_multimodal_vision"};
  CHECK_FALSE(needs_plain_weight(words, "model.layers.0.self_attn.qkv_proj"));
  CHECK(needs_plain_weight(words, "model.embed_tokens_extend.image_embed.img_processor.encoder.layers.0.mlp.fc1"));
}
