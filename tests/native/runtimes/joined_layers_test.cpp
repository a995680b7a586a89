// Which layers vLLM joins: packed_modules_mapping of its models.
#include "runtimes/vllm/joined_layers.h"

#include <doctest/doctest.h>

using namespace wasmquant::vllm;

TEST_CASE("joined layers: parts of one module have one name") {
  const struct {
    const char *layer, *name;
  } cases[] = {
      {"model.layers.0.self_attn.q_proj", "model.layers.0.self_attn.q_proj+"},
      {"model.layers.0.self_attn.k_proj", "model.layers.0.self_attn.q_proj+"},
      {"model.layers.0.self_attn.v_proj", "model.layers.0.self_attn.q_proj+"},
      {"model.layers.1.self_attn.v_proj", "model.layers.1.self_attn.q_proj+"},
      {"model.layers.0.mlp.up_proj", "model.layers.0.mlp.gate_proj+"},
      {"model.layers.0.self_attn.kv_a_proj_with_mqa", "model.layers.0.self_attn.q_a_proj+"},
      {"encoder.layer.0.attention.self.key", "encoder.layer.0.attention.self.query+"},
      {"q_proj", "q_proj+"},
      {"model.layers.0.self_attn.o_proj", ""},
      {"model.layers.0.mlp.down_proj", ""},
      {"lm_head", ""},
      {"", ""},
  };
  for (const auto& [layer, name] : cases) {
    CAPTURE(layer);
    CHECK(joined_layer(layer) == name);
  }
}

TEST_CASE("joined layers: all experts of a block are one; shared experts are an MLP of their own") {
  for (const char* part : {"0.gate_proj", "0.up_proj", "17.down_proj", "3.w1", "3.w2", "gate_up_proj"}) {
    CAPTURE(part);
    CHECK(joined_layer(std::string("model.layers.2.mlp.experts.") + part) == "model.layers.2.mlp.experts");
  }
  CHECK(joined_layer("model.layers.2.mlp.shared_experts.up_proj") == "model.layers.2.mlp.shared_experts.gate_proj+");
  CHECK(joined_layer("model.experts").empty());
}

TEST_CASE("joined layers: an attention, an MLP and each expert become one matrix each") {
  const struct {
    const char *layer, *name;
  } cases[] = {
      {"model.layers.0.self_attn.v_proj", "model.layers.0.self_attn.q_proj+"},
      {"model.layers.0.self_attn.g_proj", "model.layers.0.self_attn.q_proj+"},
      {"model.layers.2.mlp.experts.17.up_proj", "model.layers.2.mlp.experts.17.gate_proj+"},
      {"model.layers.2.block_sparse_moe.experts.3.w3", "model.layers.2.block_sparse_moe.experts.3.w1+"},
      {"model.layers.2.block_sparse_moe.experts.3.w2", ""},
      {"visual.blocks.1.attn.k", "visual.blocks.1.attn.q+"},
      {"model.layers.2.mlp.experts.gate_up_proj", ""},
      {"model.layers.0.self_attn.o_proj", ""},
      {"lm_head", ""},
  };
  for (const auto& [layer, name] : cases) {
    CAPTURE(layer);
    CHECK(joined_matrix(layer) == name);
  }
  CHECK(joined_layer("model.layers.0.self_attn.g_proj").empty());
}
