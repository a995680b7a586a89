// Folders of mlx-lm: what its `sanitize` does to the tensors of a family is undone, in names, shapes and values.
#include <functional>

#include "pipeline/quantized_model.h"

using namespace wasmquant;
using namespace wasmquant::testing;

namespace {

using Index = std::vector<uint64_t>;

/// Where the element at an index of a tensor of the class comes from: a tensor of the folder and the element in it.
struct Origin {
  std::string name;
  uint64_t element;
};

struct Expected {
  const char* name;
  Index shape;
  std::function<Origin(const Index&)> origin;
  std::function<float(float, const Index&)> change = [](float value, const Index&) { return value; };
};

struct Case {
  const char* config;
  std::vector<std::pair<const char*, Index>> stored;
  std::vector<Expected> expected;
};

uint64_t size_of(const Index& shape) {
  uint64_t size = 1;
  for (const uint64_t axis : shape) size *= axis;
  return size;
}

/// Whole numbers, another sequence for each name.
std::vector<float> values_for(const std::string& name, const Index& shape) {
  std::vector<float> values(size_of(shape));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>((i * 7 + name.size() * 13 + static_cast<size_t>(name.back())) % 113) - 50;
  return values;
}

QuantizedModel folder_of(const Case& folder) {
  std::vector<RawTensor> tensors;
  for (const auto& [name, shape] : folder.stored) {
    const std::vector<float> values = values_for(name, shape);
    tensors.push_back({name, StorageDtype::F32, shape,
                       std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float))});
  }
  return model_of(tensors, folder.config, {}, {{"format", "mlx"}});
}

void check_values(const QuantizedModel& model, const ModelIndex& restored, const Expected& expected) {
  const ModelTensor* const found = restored.find(expected.name);
  REQUIRE(found != nullptr);
  CHECK(found->stored.shape == expected.shape);
  Index index(expected.shape.size());
  for (const uint64_t tile_bytes : {1u, 1u << 20}) {
    const std::vector<float> values = decoded_values(model, *found, tile_bytes, tile_bytes == 1);
    REQUIRE(values.size() == size_of(expected.shape));
    for (uint64_t i = 0; i < values.size(); ++i) {
      uint64_t rest = i;
      for (size_t axis = index.size(); axis-- > 0; rest /= expected.shape[axis])
        index[axis] = rest % expected.shape[axis];
      const Origin origin = expected.origin(index);
      const ModelTensor* const source = model.index.find(origin.name);
      REQUIRE(source != nullptr);
      const float stored = values_for(origin.name, source->stored.shape)[origin.element];
      if (values[i] != expected.change(stored, index)) FAIL_CHECK("element " << i << " is " << values[i]);
    }
  }
}

/// The values of `stored` in their order, from the matrix of that number on.
Expected in_order(const char* name, Index shape, const char* stored, uint64_t number = 0) {
  return {name, shape, [=](const Index& at) {
            uint64_t element = number;
            for (size_t axis = 0; axis < at.size(); ++axis) element = element * shape[axis] + at[axis];
            return Origin{stored, element};
          }};
}

const Case kCases[] = {
    {R"({"model_type":"mixtral","architectures":["MixtralForCausalLM"]})",
     {{"model.layers.0.block_sparse_moe.switch_mlp.gate_proj.weight", {3, 4, 6}},
      {"model.layers.0.block_sparse_moe.switch_mlp.down_proj.weight", {3, 6, 4}},
      {"model.layers.0.self_attn.q_proj.weight", {6, 6}}},
     {in_order("model.layers.0.block_sparse_moe.experts.0.w1.weight", {4, 6},
               "model.layers.0.block_sparse_moe.switch_mlp.gate_proj.weight", 0),
      in_order("model.layers.0.block_sparse_moe.experts.2.w2.weight", {6, 4},
               "model.layers.0.block_sparse_moe.switch_mlp.down_proj.weight", 2),
      in_order("model.layers.0.self_attn.q_proj.weight", {6, 6}, "model.layers.0.self_attn.q_proj.weight", 0)}},
    {R"({"model_type":"gpt_oss","architectures":["GptOssForCausalLM"]})",
     {{"model.layers.0.mlp.experts.gate_proj.weight", {3, 6, 8}},
      {"model.layers.0.mlp.experts.up_proj.weight", {3, 6, 8}},
      {"model.layers.0.mlp.experts.gate_proj.bias", {3, 6}},
      {"model.layers.0.mlp.experts.up_proj.bias", {3, 6}},
      {"model.layers.0.mlp.experts.down_proj.weight", {3, 8, 6}}},
     {{"model.layers.0.mlp.experts.gate_up_proj",
       {3, 8, 12},
       [](const Index& at) {
         return Origin{at[2] % 2 == 0 ? "model.layers.0.mlp.experts.gate_proj.weight"
                                      : "model.layers.0.mlp.experts.up_proj.weight",
                       (at[0] * 6 + at[2] / 2) * 8 + at[1]};
       }},
      {"model.layers.0.mlp.experts.gate_up_proj_bias",
       {3, 12},
       [](const Index& at) {
         return Origin{
             at[1] % 2 == 0 ? "model.layers.0.mlp.experts.gate_proj.bias" : "model.layers.0.mlp.experts.up_proj.bias",
             at[0] * 6 + at[1] / 2};
       }},
      {"model.layers.0.mlp.experts.down_proj",
       {3, 6, 8},
       [](const Index& at) {
         return Origin{"model.layers.0.mlp.experts.down_proj.weight", (at[0] * 8 + at[2]) * 6 + at[1]};
       }}}},
    {R"({"model_type":"granitemoe","architectures":["GraniteMoeForCausalLM"]})",
     {{"model.layers.0.block_sparse_moe.switch_mlp.gate_proj.weight", {2, 4, 6}},
      {"model.layers.0.block_sparse_moe.switch_mlp.up_proj.weight", {2, 4, 6}},
      {"model.layers.0.block_sparse_moe.switch_mlp.down_proj.weight", {2, 6, 4}}},
     {{"model.layers.0.block_sparse_moe.input_linear.weight",
       {2, 8, 6},
       [](const Index& at) {
         return Origin{at[1] < 4 ? "model.layers.0.block_sparse_moe.switch_mlp.gate_proj.weight"
                                 : "model.layers.0.block_sparse_moe.switch_mlp.up_proj.weight",
                       (at[0] * 4 + at[1] % 4) * 6 + at[2]};
       }},
      in_order("model.layers.0.block_sparse_moe.output_linear.weight", {2, 6, 4},
               "model.layers.0.block_sparse_moe.switch_mlp.down_proj.weight", 0)}},
    {R"({"model_type":"dbrx","architectures":["DbrxForCausalLM"]})",
     {{"transformer.blocks.0.ffn.experts.0.w1.weight", {4, 6}},
      {"transformer.blocks.0.ffn.experts.1.w1.weight", {4, 6}},
      {"transformer.blocks.0.ffn.experts.0.w2.weight", {6, 4}},
      {"transformer.blocks.0.ffn.experts.1.w2.weight", {6, 4}}},
     {{"transformer.blocks.0.ffn.experts.mlp.w1",
       {8, 6},
       [](const Index& at) {
         return Origin{"transformer.blocks.0.ffn.experts." + std::to_string(at[0] / 4) + ".w1.weight",
                       at[0] % 4 * 6 + at[1]};
       }},
      {"transformer.blocks.0.ffn.experts.mlp.w2",
       {8, 6},
       [](const Index& at) {
         return Origin{"transformer.blocks.0.ffn.experts." + std::to_string(at[0] / 4) + ".w2.weight",
                       at[1] * 4 + at[0] % 4};
       }}}},
    {R"({"model_type":"deepseek_v3","architectures":["DeepseekV3ForCausalLM"]})",
     {{"model.layers.0.self_attn.embed_q.weight", {2, 6, 3}},
      {"model.layers.0.self_attn.unembed_out.weight", {2, 5, 6}}},
     {{"model.layers.0.self_attn.kv_b_proj.weight",
       {2 * (3 + 5), 6},
       [](const Index& at) {
         const uint64_t head = at[0] / 8, row = at[0] % 8;
         return row < 3 ? Origin{"model.layers.0.self_attn.embed_q.weight", (head * 6 + at[1]) * 3 + row}
                        : Origin{"model.layers.0.self_attn.unembed_out.weight", (head * 5 + row - 3) * 6 + at[1]};
       }}}},
    {R"({"model_type":"qwen3_next","architectures":["Qwen3NextForCausalLM"]})",
     {{"model.norm.weight", {8}},
      {"model.layers.0.linear_attn.norm.weight", {8}},
      {"model.layers.0.linear_attn.conv1d.weight", {8, 4, 1}}},
     {{"model.norm.weight",
       {8},
       [](const Index& at) {
         return Origin{"model.norm.weight", at[0]};
       },
       [](float value, const Index&) { return value - 1; }},
      {"model.layers.0.linear_attn.norm.weight",
       {8},
       [](const Index& at) {
         return Origin{"model.layers.0.linear_attn.norm.weight", at[0]};
       }},
      {"model.layers.0.linear_attn.conv1d.weight",
       {8, 1, 4},
       [](const Index& at) {
         return Origin{"model.layers.0.linear_attn.conv1d.weight", at[0] * 4 + at[2]};
       }}}},
    {R"({"model_type":"gpt2","architectures":["GPT2LMHeadModel"]})",
     {{"model.h.0.attn.c_attn.weight", {24, 8}}, {"model.h.0.ln_1.weight", {8}}},
     {{"transformer.h.0.attn.c_attn.weight",
       {8, 24},
       [](const Index& at) {
         return Origin{"model.h.0.attn.c_attn.weight", at[1] * 8 + at[0]};
       }},
      {"transformer.h.0.ln_1.weight",
       {8},
       [](const Index& at) {
         return Origin{"model.h.0.ln_1.weight", at[0]};
       }}}},
    {R"({"model_type":"qwen2_vl","architectures":["Qwen2VLForConditionalGeneration"]})",
     {{"language_model.model.norm.weight", {8}}, {"vision_tower.patch_embed.proj.weight", {4, 2, 3, 5, 2}}},
     {{"model.norm.weight",
       {8},
       [](const Index& at) {
         return Origin{"language_model.model.norm.weight", at[0]};
       }},
      {"visual.patch_embed.proj.weight",
       {4, 2, 2, 3, 5},
       [](const Index& at) {
         return Origin{"vision_tower.patch_embed.proj.weight",
                       (((at[0] * 2 + at[2]) * 3 + at[3]) * 5 + at[4]) * 2 + at[1]};
       }}}},
    {R"({"model_type":"falcon_h1","architectures":["FalconH1ForCausalLM"],"embedding_multiplier":4,)"
     R"("attention_in_multiplier":0.5,"ssm_in_multiplier":2,"ssm_multipliers":[1,2,4,8,0.5],"mamba_d_ssm":4,)"
     R"("mamba_n_heads":2})",
     {{"model.embed_tokens.weight", {4, 8}},
      {"model.layers.0.mamba.in_proj.weight", {16, 8}},
      {"model.layers.0.self_attn.k_proj.weight", {8, 8}}},
     {{"model.embed_tokens.weight",
       {4, 8},
       [](const Index& at) {
         return Origin{"model.embed_tokens.weight", at[0] * 8 + at[1]};
       },
       [](float value, const Index&) { return value / 4; }},
      {"model.layers.0.self_attn.k_proj.weight",
       {8, 8},
       [](const Index& at) {
         return Origin{"model.layers.0.self_attn.k_proj.weight", at[0] * 8 + at[1]};
       },
       [](float value, const Index&) { return value / 0.5f; }},
      {"model.layers.0.mamba.in_proj.weight",
       {16, 8},
       [](const Index& at) {
         return Origin{"model.layers.0.mamba.in_proj.weight", at[0] * 8 + at[1]};
       },
       [](float value, const Index& at) {
         constexpr float kRows[] = {1, 1, 1, 1, 2, 2, 2, 2, 4, 4, 4, 8, 8, 8, 0.5f, 0.5f};
         return value / (2 * kRows[at[0]]);
       }}}},
    {R"({"model_type":"apertus","architectures":["ApertusForCausalLM"]})",
     {{"model.layers.0.mlp.act_fn.alpha_p", {}}},
     {{"model.layers.0.mlp.act_fn.alpha_p",
       {1},
       [](const Index&) {
         return Origin{"model.layers.0.mlp.act_fn.alpha_p", 0};
       }}}},
};

std::string refusal(const char* config, const std::vector<std::pair<const char*, Index>>& stored) {
  const QuantizedModel model = folder_of({config, stored, {}});
  const auto original = original_model(model.index);
  return original ? "nothing refused" : original.error().where + ": " + original.error().message;
}

}  // namespace

TEST_CASE("MLX names: tensors have the names, shapes and values of the class again") {
  for (const Case& folder : kCases) {
    CAPTURE(std::string(folder.config));
    const QuantizedModel model = folder_of(folder);
    const auto original = original_model(model.index);
    REQUIRE_MESSAGE(bool(original), original.error().message);
    REQUIRE(*original != nullptr);
    for (const Expected& expected : folder.expected) {
      CAPTURE(std::string(expected.name));
      check_values(model, **original, expected);
    }
  }
}

TEST_CASE("MLX names: what cannot be undone is refused with the tensor and the family") {
  const struct {
    const char* config;
    std::vector<std::pair<const char*, Index>> stored;
    const char* said;
  } kRefused[] = {
      {R"({"model_type":"some_moe"})",
       {{"model.layers.0.mlp.switch_mlp.up_proj.weight", {3, 8, 8}}},
       "more than two axes"},
      {R"({"model_type":"deepseek_v3"})", {{"model.layers.0.self_attn.embed_q.weight", {2, 8, 4}}}, "unembed_out"},
      {R"({"model_type":"deepseek_v3"})",
       {{"model.layers.0.self_attn.embed_q.weight", {2, 8, 4}},
        {"model.layers.0.self_attn.unembed_out.weight", {3, 4, 8}}},
       "[heads, latent, keys]"},
      {R"({"model_type":"granitemoe"})",
       {{"model.layers.0.block_sparse_moe.switch_mlp.gate_proj.weight", {2, 4, 6}},
        {"model.layers.0.block_sparse_moe.switch_mlp.up_proj.weight", {2, 5, 6}}},
       "holds F32 [2, 5, 6]"},
      {R"({"model_type":"granitemoe"})",
       {{"model.layers.0.block_sparse_moe.switch_mlp.up_proj.weight", {2, 4, 6}}},
       "gate_proj.weight: is not in the model"},
      {R"({"model_type":"falcon_h1"})", {{"model.embed_tokens.weight", {4, 8}}}, "config.json/embedding_multiplier"},
      {R"({"model_type":"falcon_h1","ssm_in_multiplier":2,"mamba_d_ssm":4,"mamba_n_heads":2})",
       {{"model.layers.0.mamba.in_proj.weight", {16, 8}}},
       "ssm_multipliers"},
      {R"({"model_type":"falcon_h1","ssm_in_multiplier":2,"mamba_d_ssm":40,"mamba_n_heads":2})",
       {{"model.layers.0.mamba.in_proj.weight", {16, 8}}},
       "sizes like these"},
      {R"({"model_type":"dbrx"})",
       {{"transformer.blocks.0.ffn.experts.0.w1.weight", {4, 6}},
        {"transformer.blocks.0.ffn.experts.1.w1.weight", {5, 6}}},
       "experts of several shapes"},
  };
  for (const auto& [config, stored, said] : kRefused) {
    CAPTURE(std::string(said));
    const std::string text = refusal(config, stored);
    CHECK_MESSAGE(text.find(said) != std::string::npos, text);
  }
}
