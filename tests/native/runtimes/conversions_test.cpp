// What transformers converts while it loads, by family and layer.
#include "runtimes/transformers/conversions.h"

#include <doctest/doctest.h>

#include "families/module_path.h"

using namespace wasmquant::families;
using namespace wasmquant::transformers;

namespace {

ModelFamily conversions_family_of(const char* config) {
  const auto document = wasmquant::json::parse(config);
  REQUIRE(bool(document));
  return ModelFamily::read(*document);
}

}  // namespace

TEST_CASE("a family's conversions are those of its model type and of every part of it") {
  const ModelFamily plain = conversions_family_of(R"({"model_type": "llama"})");
  CHECK(Conversions(plain).rows().empty());
  for (const char* config :
       {R"({"model_type": "qwen3_5_moe_text"})",
        R"({"model_type": "x", "text_config": {"model_type": "qwen3_5_moe_text"}})",
        R"({"model_type": "x", "thinker_config": {"text_config": {"model_type": "qwen2_moe"}}})"}) {
    const ModelFamily family = conversions_family_of(config);
    const Conversions conversions(family);
    CHECK(conversions.has(Conversion::Kind::experts));
    const Conversion* const merged = conversions.merged_experts("gate_up_proj");
    REQUIRE(merged != nullptr);
    CHECK(merged->sources == "gate_proj up_proj");
  }
}

TEST_CASE("a layer's conversion is found by its name in the file and by the name that the loader gives it") {
  const ModelFamily family = conversions_family_of(R"({"model_type": "mixtral"})");
  const Conversions conversions(family);
  const Conversion* const found = conversions.find("model.layers.0.block_sparse_moe.experts.3.w1");
  REQUIRE(found != nullptr);
  CHECK(found->kind == Conversion::Kind::experts);
  CHECK(conversions.find("model.layers.0.block_sparse_moe.experts.w1") == nullptr);
  CHECK(conversions.find("model.layers.0.block_sparse_moe.experts.3.other") == nullptr);
  CHECK(conversions.find("model.layers.0.self_attn.q_proj") == nullptr);
}

TEST_CASE("single experts are below a numbered module") {
  CHECK(is_single_expert("mlp.experts.12.up_proj"));
  CHECK_FALSE(is_single_expert("mlp.experts.12"));
  CHECK_FALSE(is_single_expert("mlp.experts.up_proj"));
  CHECK_FALSE(is_single_expert("mlp.shared_experts.0.up_proj"));
}
