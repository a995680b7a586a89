#include "config/match/layer_type.h"

#include <doctest/doctest.h>

#include <string_view>
#include <vector>

using namespace wasmquant;

TEST_CASE("layer classes follow from names and shapes") {
  struct Case {
    const char* name;
    std::vector<uint64_t> shape;
    const char* type;
  };
  const Case cases[] = {
      {"model.layers.0.self_attn.q_proj.weight", {64, 64}, "Linear"},
      {"lm_head.weight", {1000, 64}, "Linear"},
      {"model.layers.3.mlp.gate.weight", {8, 64}, "Linear"},
      {"model.embed_tokens.weight", {1000, 64}, "Embedding"},
      {"transformer.wte.weight", {1000, 64}, "Embedding"},
      {"transformer.wpe.weight", {1000, 64}, "Embedding"},
      {"bert.embeddings.word_embeddings.weight", {1000, 64}, "Embedding"},
      {"bert.embeddings.position_embeddings.weight", {512, 64}, "Embedding"},
      {"bert.embeddings.LayerNorm.weight", {64}, "Norm"},
      {"tok_embeddings.weight", {1000, 64}, "Embedding"},
      {"token_embd.weight", {1000, 64}, "Embedding"},
      {"model.decoder.embed_positions.weight", {100, 64}, "Embedding"},
      {"shared.weight", {1000, 64}, "Embedding"},
      {"embed_out.weight", {1000, 64}, "Linear"},
      {"tapas.embeddings.token_type_embeddings_0.weight", {3, 64}, "Embedding"},
      {"embeddings.xpath_embeddings.xpath_tag_sub_embeddings.12.weight", {256, 64}, "Embedding"},
      {"prompt_encoder.point_embed.0.weight", {1, 64}, "Embedding"},
      {"model.decoder.embed_tokens.1.weight", {1000, 64}, "Embedding"},
      {"encoder.wrapped_encoder.embed_positions.pe_k.weight", {320, 64}, "Embedding"},
      {"canine.char_embeddings.HashBucketCodepointEmbedder_7.weight", {256, 64}, "Embedding"},
      {"mask_decoder.mask_tokens.weight", {4, 64}, "Embedding"},
      {"transformer.w.weight", {1000, 64}, "Embedding"},
      {"model.layers.0.w.weight", {64, 64}, "Linear"},
      {"layout_embeddings.box_linear_embeddings.weight", {64, 64}, "Linear"},
      {"decoder.layers.0.self_attn.relative_pos_embeddings.weight", {64, 64}, "Linear"},
      {"time_embed.0.weight", {64, 64}, "Linear"},
      {"class_embed.0.weight", {10, 64}, "Linear"},
      {"cpmant.input_embedding.weight", {1000, 64}, "Embedding"},
      {"model.encoder.embedder.input_embedding.weight", {64, 8}, "Linear"},
      {"x_embedder.weight", {64, 64}, "Linear"},
      {"time_embedding.linear_1.weight", {64, 64}, "Linear"},
      {"vision.embeddings.patch_embedding.weight", {64, 3, 16, 16}, "Conv2d"},
      {"conv1.weight", {64, 3, 7, 7}, "Conv2d"},
      {"encoder.conv1.weight", {64, 80, 3}, "Conv1d"},
      {"patch_embed.proj.weight", {64, 3, 2, 14, 14}, "Conv3d"},
      {"model.norm.weight", {64}, "Norm"},
      {"model.layers.0.input_layernorm.weight", {64}, "Norm"},
      {"h.0.ln_1.weight", {64}, "Norm"},
      {"layer1.0.bn2.weight", {64}, "Norm"},
      {"h.0.ln_1.bias", {64}, "Norm"},
      {"unet.norm.weight", {4, 64}, "Norm"},
      {"model.norm_proj.weight", {64, 64}, "Linear"},
      {"act.weight", {1}, ""},
      {"q_proj.bias", {64}, ""},
      {"logit_scale", {}, ""},
      {"experts.gate_up_proj", {8, 64, 128}, "Experts"},
      {"block_sparse_moe.input_linear.weight", {8, 64, 128}, "Experts"},
      {"mlp.experts.fc1.weight", {8, 64, 128}, "Experts"},
      {"weight", {4, 4}, "Linear"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    CHECK(layer_type_of(c.name, c.shape) == std::string_view(c.type));
  }
}

TEST_CASE("a layer's name is the tensor's without its last component") {
  CHECK(layer_name_of("a.b.weight").layer == "a.b");
  CHECK(layer_name_of("a.b.weight").role == TensorRole::weight);
  CHECK(layer_name_of("a.b.bias").layer == "a.b");
  CHECK(layer_name_of("a.b.bias").role == TensorRole::bias);
  CHECK(layer_name_of("a.weight_scale").layer == "a.weight_scale");
  CHECK(layer_name_of("a.weight_scale").role == TensorRole::other);
  CHECK(layer_name_of("weight").layer == "");
}
