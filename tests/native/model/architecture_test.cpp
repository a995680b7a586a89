// config.json of every spelling, and configs that a forward pass refuses.
#include "model/config/architecture.h"

#include <doctest/doctest.h>

#include <cmath>

#include "model/block_weights.h"
#include "model/forward_pass.h"
#include "model/steps/relative_bias.h"

namespace wasmquant::model {
namespace {

const std::string kSizes =
    R"("vocab_size": 100, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 4, "num_attention_heads": 8)";

Result<Architecture> read(const std::string& more) {
  const auto config = json::parse("{" + kSizes + ", " + more + "}");
  REQUIRE(bool(config));
  return read_architecture(*config);
}

Architecture accepted(const std::string& more) {
  auto found = read(more);
  REQUIRE_MESSAGE(found, (found ? "" : found.error().message));
  return std::move(*found);
}

TEST_CASE("missing keys follow from the family") {
  const Architecture llama = accepted(R"("model_type": "llama")");
  CHECK(llama.kv_heads == 8);
  CHECK(llama.head_dim == 8);
  CHECK(llama.rope.theta == 10000);
  CHECK_FALSE(llama.tied_head);
  CHECK(block_weights(llama).size() == 9);
  const Architecture qwen2 = accepted(R"("model_type": "qwen2")");
  for (const ModelPart part : {ModelPart::q, ModelPart::k, ModelPart::v}) CHECK(qwen2.names.has_bias(part));
  CHECK_FALSE(qwen2.names.has_bias(ModelPart::o));
  const Architecture gemma = accepted(R"("model_type": "gemma", "hidden_act": "gelu")");
  CHECK(gemma.tied_head);
  CHECK(gemma.norms.plus_one);
  CHECK(gemma.scales.embedding == 8.0f);
  CHECK(gemma.activation == kernels::Activation::gelu_tanh);
  const Architecture gemma2 = accepted(R"("model_type": "gemma2", "sliding_window": 16)");
  CHECK(gemma2.scales.attention_cap == 50);
  CHECK(gemma2.scales.logit_cap == 30);
  CHECK(gemma2.scales.attention == 1.0f / 16);
  CHECK((gemma2.is_sliding[0] && !gemma2.is_sliding[1] && gemma2.is_sliding[2]));
  const Architecture uncapped = accepted(R"("model_type": "gemma2", "attn_logit_softcapping": null)");
  CHECK(uncapped.scales.attention_cap == 0);
  CHECK_FALSE(uncapped.is_sliding[0]);
  const Architecture gemma3 = accepted(R"("model_type": "gemma3_text", "sliding_window": 8, "sliding_window_pattern": 2,
                  "rope_scaling": {"rope_type": "linear", "factor": 8.0}, "rope_local_base_freq": 5000)");
  CHECK(gemma3.rope.theta == 1e6);
  CHECK(gemma3.rope.factor == 8);
  CHECK(gemma3.sliding_rope.theta == 5000);
  CHECK(gemma3.sliding_rope.scaling == Rope::Scaling::none);
  CHECK((gemma3.is_sliding[0] && !gemma3.is_sliding[1]));
  CHECK(block_weights(gemma3).size() == 13);
}

TEST_CASE("encoders see a window on each side, and the first block may norm nothing") {
  const Architecture modernbert = accepted(
      R"("model_type": "modernbert", "local_attention": 20, "global_attn_every_n_layers": 3, "global_rope_theta": 1600,
         "local_rope_theta": 100, "norm_bias": true)");
  CHECK(modernbert.is_encoder);
  CHECK(modernbert.window == 11);
  CHECK(
      (!modernbert.is_sliding[0] && modernbert.is_sliding[1] && modernbert.is_sliding[2] && !modernbert.is_sliding[3]));
  CHECK(modernbert.is_rotated[0]);
  CHECK(modernbert.rope.theta == 1600);
  CHECK(modernbert.sliding_rope.theta == 100);
  CHECK_FALSE(norms_sums(modernbert));
  CHECK_FALSE(norms_input(modernbert, 0));
  CHECK(norms_input(modernbert, 1));
  CHECK(block_weights(modernbert, 1).size() == block_weights(modernbert, 0).size() + 2);
  const Architecture named = accepted(
      R"("model_type": "modernbert", "local_attention": 128,
         "layer_types": ["full_attention", "full_attention", "sliding_attention", "full_attention"])");
  CHECK((!named.is_sliding[1] && named.is_sliding[2]));
  CHECK(named.rope.theta == 160000);
  const Architecture gemma =
      accepted(R"("model_type": "gemma3_text", "sliding_window": 512, "use_bidirectional_attention": true)");
  CHECK(gemma.is_encoder);
  CHECK(gemma.window == 257);
  CHECK_FALSE(accepted(R"("model_type": "gemma3_text", "use_bidirectional_attention": false)").is_encoder);
  CHECK(norms_sums(accepted(R"("model_type": "bert")")));
  const auto refused = read(R"("model_type": "llama", "use_bidirectional_attention": true)");
  REQUIRE_FALSE(bool(refused));
  CHECK(refused.error().where == "/use_bidirectional_attention");
}

TEST_CASE("layers with short convolutions are those of either spelling, widths are adjusted") {
  for (const char* layers :
       {R"("layer_types": ["conv", "full_attention", "conv", "conv"])", R"("full_attn_idxs": [1])"}) {
    const Architecture a =
        accepted(R"("model_type": "lfm2", "block_ff_dim": 300, "block_multiple_of": 64, )" + std::string(layers));
    CHECK(a.intermediate == 256);
    CHECK((mixer_of(a, 0) == Mixer::convolution && mixer_of(a, 1) == Mixer::attention &&
           mixer_of(a, 2) != Mixer::attention));
    CHECK(block_weights(a, 0).size() == 8);
  }
}

TEST_CASE("layers with a recurrence follow from lists and periods") {
  const std::string sizes = R"("linear_num_value_heads": 4, "linear_num_key_heads": 2, "linear_key_head_dim": 8, )";
  const Architecture qwen = accepted(R"("model_type": "qwen3_5_text", "full_attention_interval": 2, )" + sizes +
                                     R"("linear_value_head_dim": 6)");
  CHECK((mixer_of(qwen, 0) == Mixer::delta && mixer_of(qwen, 1) == Mixer::attention));
  CHECK(block_weights(qwen, 1).size() == 11);
  uint32_t rows = 0;
  for (const BlockWeight& weight : block_weights(qwen, 0))
    if (weight.slot == Slot::q) rows = weight.rows;
  CHECK(rows == 2 * 16 + 24);
  CHECK(mixed_columns(qwen, 0) == 24);
  const Architecture bamba = accepted(R"("model_type": "bamba", "attn_layer_indices": [2], "mamba_n_heads": 8)");
  CHECK((mixer_of(bamba, 0) == Mixer::state_space && mixer_of(bamba, 2) == Mixer::attention));
  CHECK(bamba.recurrence.value_dim == 16);
  const auto impossible = read(R"("model_type": "qwen3_5_text", "linear_num_value_heads": 3)");
  REQUIRE_FALSE(impossible);
  CHECK(impossible.error().where == "/linear_num_key_heads");
}

TEST_CASE("layers of Mamba 1 have the channels, ranks and periods that config.json tells") {
  const Architecture mamba = accepted(R"("model_type": "mamba", "time_step_rank": "auto")");
  CHECK((mixer_of(mamba, 0) == Mixer::selective && mamba.recurrence.step_rank == 4 && mamba.recurrence.key_dim == 16));
  CHECK(mixed_columns(mamba, 0) == 96);
  CHECK(block_weights(mamba, 0).size() == 10);
  const Architecture jamba = accepted(R"("model_type": "jamba", "attn_layer_period": 2, "attn_layer_offset": 1,
      "expert_layer_period": 3, "expert_layer_offset": 2, "num_experts": 4, "num_experts_per_tok": 2, "mamba_dt_rank": 5)");
  CHECK((mixer_of(jamba, 0) == Mixer::selective && mixer_of(jamba, 1) == Mixer::attention));
  CHECK((jamba.recurrence.heads == 128 && jamba.recurrence.step_rank == 5));
  CHECK((has_experts(jamba, 2) && !has_experts(jamba, 0) && !has_experts(jamba, 3)));
  const Architecture dense = accepted(R"("model_type": "jamba", "num_experts": 1, "num_experts_per_tok": 1)");
  CHECK((dense.routing.experts == 0 && has_feed_forward(dense.names)));
}

TEST_CASE("a layer mixes tokens or feeds forward, as its letter or its word tells") {
  const std::string sizes =
      R"("model_type": "nemotron_h", "mamba_num_heads": 4, "mamba_head_dim": 8, "n_groups": 2, "n_routed_experts": 4,
         "num_experts_per_tok": 2, "moe_intermediate_size": 8, "moe_shared_expert_intermediate_size": 12, )";
  for (const char* list : {R"("hybrid_override_pattern": "M*E-")",
                           R"("layers_block_type": ["linear_attention", "full_attention", "moe", "mlp"])"}) {
    CAPTURE(std::string(list));
    const Architecture a = accepted(sizes + list);
    CHECK((mixer_of(a, 0) == Mixer::state_space && mixer_of(a, 1) == Mixer::attention));
    CHECK((mixer_of(a, 2) == Mixer::none && mixer_of(a, 3) == Mixer::none));
    CHECK((!feeds_forward(a, 0) && !feeds_forward(a, 1) && has_experts(a, 2) && feeds_forward(a, 3)));
    const auto slots = [&](uint32_t layer) {
      std::vector<Slot> out;
      for (const BlockWeight& weight : block_weights(a, layer)) out.push_back(weight.slot);
      return out;
    };
    CHECK(slots(1) == std::vector{Slot::input_norm, Slot::q, Slot::k, Slot::v, Slot::o});
    CHECK(slots(2) == std::vector{Slot::feed_forward_norm, Slot::up, Slot::down, Slot::correction, Slot::router});
    CHECK(slots(3) == std::vector{Slot::feed_forward_norm, Slot::up, Slot::down});
    CHECK(block_weights(expert_of(a, 3)).size() == 2);
    CHECK_FALSE(is_expert(block_of(a, 3)));
  }
  const auto shorter = read(sizes + R"("hybrid_override_pattern": "M*E")");
  REQUIRE_FALSE(shorter);
  CHECK(shorter.error().where == "/hybrid_override_pattern");
  for (const char* refused : {R"("moe_latent_size": 8, )", R"("mlp_bias": true, )"})
    CHECK(read(sizes + refused + R"("hybrid_override_pattern": "M*E-")").error().code == ErrorCode::not_implemented);
}

TEST_CASE("T5 has an encoder with biases by distance, BERT with slopes another feed-forward") {
  const std::string sizes = R"("model_type": "t5", "d_kv": 16, )";
  const Architecture gated = accepted(sizes + R"("feed_forward_proj": "gated-gelu")");
  CHECK((gated.is_encoder && gated.head_dim == 16 && gated.scales.attention == 1));
  CHECK((gated.relative.buckets == 32 && gated.relative.farthest == 128 && !gated.relative.has_own_tables));
  CHECK((gated.names.has(ModelPart::gate) && gated.activation == kernels::Activation::gelu_tanh));
  CHECK(block_weights(gated, 0).size() == block_weights(gated, 1).size() + 1);
  const Architecture plain = accepted(sizes + R"("relative_attention_num_buckets": 8)");
  CHECK((!plain.names.has(ModelPart::gate) && plain.activation == kernels::Activation::relu));
  CHECK(accepted(R"("model_type": "umt5")").relative.has_own_tables);
  for (const char* wrong : {R"("relative_attention_num_buckets": 6)", R"("relative_attention_max_distance": 8)"}) {
    const auto found = read(sizes + wrong);
    REQUIRE_FALSE(found);
    CHECK(found.error().where == "/relative_attention_num_buckets");
  }
  const Architecture jina = accepted(R"("model_type": "bert", "position_embedding_type": "alibi")");
  CHECK((jina.has_slopes && jina.names.has(ModelPart::gate_up) && !jina.names.has(ModelPart::positions)));
  CHECK_FALSE(accepted(R"("model_type": "bert")").has_slopes);
}

TEST_CASE("distances have buckets that get wider, on both sides") {
  const Relative relative{8, 16};
  const size_t before[] = {0, 1, 2, 2, 2, 2, 3, 3, 3};
  for (ptrdiff_t far = 0; far < 9; ++far) {
    CHECK(bucket_of(relative, true, -far) == before[far]);
    CHECK(bucket_of(relative, true, far) == before[far] + (far > 0 ? 4 : 0));
  }
  CHECK(bucket_of(relative, true, 1000) == 7);
  const size_t behind[] = {0, 1, 2, 3, 4, 4, 5, 5, 6};
  for (ptrdiff_t far = 0; far < 9; ++far) CHECK(bucket_of(relative, false, -far) == behind[far]);
  CHECK(bucket_of(relative, false, -1000) == 7);
}

TEST_CASE("slopes of encoders fall to both sides") {
  Architecture a;
  a.heads = 2;
  const RelativeBias bias(a, 4);
  std::vector<float> scores(4);
  bias.add(1, 1, 0, scores);
  CHECK(scores == std::vector{-0.00390625f, 0.0f, -0.00390625f, -0.0078125f});
}

TEST_CASE("factors of products are read from numbers and lists") {
  const std::string sizes =
      R"("model_type": "falcon_h1", "mamba_d_ssm": 32, "mamba_n_heads": 4, "mamba_d_head": "auto", )";
  const Architecture a =
      accepted(sizes + R"("attention_in_multiplier": 2, "key_multiplier": 3, "ssm_multipliers": [1, 2, 3, 4, 5])");
  CHECK((mixer_of(a, 0) == Mixer::both && a.recurrence.value_dim == 8));
  REQUIRE(a.factors.size() == kBlockMatrices + 5);
  CHECK((a.factors[static_cast<size_t>(Slot::q)] == 2 && a.factors[static_cast<size_t>(Slot::k)] == 6));
  CHECK((a.factors[static_cast<size_t>(Slot::o)] == 1 && a.factors[kBlockMatrices + 4] == 5));
  for (const auto& [wrong, where] : {std::pair{R"("key_multiplier": "1")", "/key_multiplier"},
                                     {R"("mlp_multipliers": [1])", "/mlp_multipliers/1"}}) {
    const auto found = read(sizes + wrong);
    REQUIRE_FALSE(found);
    CHECK(found.error().where == where);
  }
  const auto biased = read(sizes + R"("attention_bias": false, "mamba_proj_bias": true)");
  REQUIRE_FALSE(biased);
  CHECK(biased.error().where == "/mamba_proj_bias");
}

TEST_CASE("families differ by the parts that they have") {
  const Architecture cohere = accepted(R"("model_type": "cohere")");
  CHECK(cohere.is_parallel);
  CHECK(cohere.scales.logits == 0.0625f);
  CHECK(block_weights(cohere).size() == 8);  // one norm, without a bias
  const Architecture stablelm =
      accepted(R"("model_type": "stablelm", "use_parallel_residual": true, "use_qkv_bias": true)");
  CHECK(stablelm.is_parallel);
  CHECK_FALSE(stablelm.names.has(ModelPart::feed_forward_norm));
  CHECK(stablelm.names.has_bias(ModelPart::v));
  CHECK(stablelm.rope.dimensions(stablelm.head_dim) == 2);
  CHECK(accepted(R"("model_type": "stablelm")").names.has(ModelPart::feed_forward_norm));
  const Architecture smollm3 = accepted(R"("model_type": "smollm3")");
  CHECK((smollm3.is_rotated[0] && !smollm3.is_rotated[3]));
  const Architecture falcon = accepted(R"("model_type": "falcon", "alibi": false)");
  CHECK(falcon.kv_heads == 1);
  CHECK(falcon.intermediate == 96);
  CHECK(block_weights(falcon)[2].rows == 64 + 2 * 8);
  const Architecture granite =
      accepted(R"("model_type": "granite", "logits_scaling": 4.0, "attention_multiplier": 0.5)");
  CHECK(granite.scales.logits == 0.25f);
  CHECK(granite.scales.attention == 0.5f);
  CHECK(granite.norms.epsilon == 1e-6);
  const ModelNames again(stablelm.names.text());
  CHECK(again.text() == stablelm.names.text());
}

TEST_CASE("a layer of a block of any family is known by its name") {
  CHECK(is_block_layer("model.layers.0.self_attn.q_proj"));
  CHECK(is_block_layer("transformer.h.3.attn.c_attn"));
  CHECK(is_block_layer("model.decoder.layers.1.fc2"));
  CHECK_FALSE(is_block_layer("lm_head"));
  CHECK_FALSE(is_block_layer("model.layers.0.input_layernorm"));
}

TEST_CASE("sliding windows of each kind") {
  CHECK(accepted(R"("model_type": "mistral", "sliding_window": 4)").is_sliding[3]);
  CHECK_FALSE(accepted(R"("model_type": "mistral", "sliding_window": null)").is_sliding[3]);
  CHECK_FALSE(accepted(R"("model_type": "qwen2", "sliding_window": 4, "max_window_layers": 1)").is_sliding[3]);
  const Architecture qwen2 =
      accepted(R"("model_type": "qwen2", "use_sliding_window": true, "sliding_window": 4, "max_window_layers": 2)");
  CHECK((!qwen2.is_sliding[1] && qwen2.is_sliding[2]));
  const std::string llama4 = R"("model_type": "llama4_text", "num_local_experts": 4, "num_experts_per_tok": 1)";
  const Architecture chunked = accepted(
      llama4 + R"(, "attention_chunk_size": 4, "no_rope_layers": [1, 0, 1, 1], "interleave_moe_layer_step": 2)");
  CHECK((chunked.is_chunked && chunked.window == 4 && chunked.is_sliding[0] && !chunked.is_sliding[1]));
  CHECK((!chunked.has_experts[0] && chunked.has_experts[1] && chunked.has_experts[3]));
  const Architecture listed = accepted(llama4 + R"(, "attention_chunk_size": 4, "moe_layers": [0],
      "layer_types": ["full_attention", "chunked_attention", "full_attention", "full_attention"])");
  CHECK((!listed.is_sliding[0] && listed.is_sliding[1] && listed.has_experts[0] && !listed.has_experts[1]));
  CHECK_FALSE(accepted(llama4 + R"(, "attention_chunk_size": null)").is_sliding[0]);
}

TEST_CASE("layers of several sizes, which share keys") {
  const std::string gemma4 =
      R"("model_type": "gemma4_text", "sliding_window": 4, "head_dim": 8, "hidden_size_per_layer_input": 0,
      "layer_types": ["sliding_attention", "full_attention", "sliding_attention", "full_attention"])";
  const Architecture plain = accepted(gemma4);
  CHECK(plain.names.has(ModelPart::v_norm));
  CHECK_FALSE(plain.names.has(ModelPart::layer_gate));
  CHECK(plain.rope.scaling == Rope::Scaling::proportional);
  CHECK(plain.rope.dimensions(512) == 512);
  CHECK(block_of(plain, 0).head_dim == 8);
  CHECK(block_of(plain, 1).head_dim == 512);
  CHECK(widest_layer(plain).head_dim == 512);
  const Architecture listed =
      accepted(gemma4 + R"(, "attention_k_eq_v": true, "num_kv_shared_layers": 2, "use_double_wide_mlp": true,
      "per_layer_config": {"1": {"head_dim": 16, "num_key_value_heads": 2}, "3": {"head_dim": 16, "num_key_value_heads": 2}})");
  CHECK((listed.sizes.head_dims[0] == 8 && listed.sizes.head_dims[3] == 16 && listed.sizes.kv_heads[1] == 2));
  CHECK((keys_of(listed, 1) == 1 && keys_of(listed, 2) == 0 && keys_of(listed, 3) == 1));
  CHECK((shares_keys(listed, 1) && !shares_keys(listed, 2)));
  CHECK((block_of(listed, 1).intermediate == 96 && block_of(listed, 3).intermediate == 192));
  CHECK_FALSE(block_of(listed, 1).names.has(ModelPart::v));
  CHECK_FALSE(block_of(listed, 2).names.has(ModelPart::k));
  CHECK(accepted(R"("model_type": "gemma4_text")").layer_inputs.width == 256);
  const auto widths = [](const std::string& list) {
    return read_architecture(*json::parse(R"({"model_type": "gemma3n_text", "vocab_size": 100, "hidden_size": 64,
        "num_hidden_layers": 2, "num_attention_heads": 8, "num_kv_shared_layers": 0, "intermediate_size": )" +
                                          list + "}"));
  };
  const auto several = widths("[96, 32]");
  REQUIRE(bool(several));
  CHECK((block_of(*several, 0).intermediate == 96 && block_of(*several, 1).intermediate == 32));
  CHECK((several->streams.count == 4 && several->streams.low_rank == 64 && several->scales.logit_cap == 30));
  for (const char* list : {"[96]", "[96, 0]", "[96, 1.5]"}) CHECK(widths(list).error().where == "/intermediate_size");
}

TEST_CASE("configs that cannot be run are refused at their key") {
  const struct {
    const char *config, *where;
    ErrorCode code;
  } kCases[] = {
      {R"("model_type": "rwkv")", "/model_type", ErrorCode::not_implemented},
      {R"("architectures": ["LlamaForCausalLM"])", "/model_type", ErrorCode::not_implemented},
      {R"("model_type": "llama", "num_key_value_heads": 3)", "/num_key_value_heads", ErrorCode::config_invalid},
      {R"("model_type": "llama", "num_key_value_heads": 0)", "/num_key_value_heads", ErrorCode::config_invalid},
      {R"("model_type": "llama", "head_dim": 7)", "/head_dim", ErrorCode::config_invalid},
      {R"("model_type": "llama", "head_dim": 16000000)", "/head_dim", ErrorCode::config_invalid},
      {R"("model_type": "llama", "head_dim": "8")", "/head_dim", ErrorCode::config_invalid},
      {R"("model_type": "llama", "hidden_act": "quick_gelu")", "/hidden_act", ErrorCode::not_implemented},
      {R"("model_type": "llama", "rope_scaling": {"type": "ntk"})", "/rope_scaling", ErrorCode::not_implemented},
      {R"("model_type": "llama", "partial_rotary_factor": 1.5)", "/rope_parameters", ErrorCode::not_implemented},
      {R"("model_type": "phi3", "rope_scaling": {"type": "longrope", "short_factor": [1], "long_factor": [1]})",
       "/rope_scaling", ErrorCode::config_invalid},
      {R"("model_type": "gpt_oss", "num_local_experts": 4, "num_experts_per_tok": 2, "swiglu_limit": -1)",
       "/swiglu_limit", ErrorCode::config_invalid},
      {R"("model_type": "gpt_oss", "num_local_experts": 4, "num_experts_per_tok": 5)", "/num_experts",
       ErrorCode::config_invalid},
      {R"("model_type": "youtu", "qk_nope_head_dim": 8, "qk_rope_head_dim": 8, "v_head_dim": 8)", "/kv_lora_rank",
       ErrorCode::config_invalid},
      {R"("model_type": "youtu", "kv_lora_rank": 16, "qk_nope_head_dim": 8, "qk_rope_head_dim": 7, "v_head_dim": 8)",
       "/qk_rope_head_dim", ErrorCode::config_invalid},
      {R"("model_type": "youtu", "kv_lora_rank": 16, "qk_nope_head_dim": 8, "qk_rope_head_dim": 8, "v_head_dim": 9999999)",
       "/qk_rope_head_dim", ErrorCode::config_invalid},
      {R"("model_type": "deepseek_v2", "kv_lora_rank": 16, "qk_nope_head_dim": 8, "qk_rope_head_dim": 8, "v_head_dim": 8,
          "n_routed_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 8, "topk_method": "noaux_tc")",
       "/topk_method", ErrorCode::not_implemented},
      {R"("model_type": "lfm2", "conv_L_cache": 0)", "/conv_L_cache", ErrorCode::config_invalid},
      {R"("model_type": "lfm2", "conv_L_cache": 1000000)", "/conv_L_cache", ErrorCode::config_invalid},
      {R"("model_type": "lfm2", "layer_types": ["conv"])", "/layer_types", ErrorCode::config_invalid},
      {R"("model_type": "lfm2", "block_ffn_dim_multiplier": 1e9)", "/block_ffn_dim_multiplier",
       ErrorCode::config_invalid},
      {R"("model_type": "cohere", "use_qk_norm": true)", "/use_qk_norm", ErrorCode::not_implemented},
      {R"("model_type": "opt", "do_layer_norm_before": false)", "/do_layer_norm_before", ErrorCode::not_implemented},
      {R"("model_type": "smollm3", "no_rope_layers": [1])", "/no_rope_layers", ErrorCode::config_invalid},
      {R"("model_type": "mistral", "sliding_window": 0)", "/sliding_window", ErrorCode::config_invalid},
      {R"("model_type": "gemma2", "sliding_window": 4, "layer_types": ["a"])", "/layer_types",
       ErrorCode::config_invalid},
      {R"("model_type": "gemma4_text", "enable_moe_block": true, "num_experts": 4, "top_k_experts": 2, "moe_intermediate_size": 8)",
       "/hidden_size_per_layer_input", ErrorCode::not_implemented},
      {R"("model_type": "gemma3n_text", "altup_num_inputs": 9)", "/altup_num_inputs", ErrorCode::config_invalid},
      {R"("model_type": "gemma3n_text", "altup_active_idx": 4)", "/altup_num_inputs", ErrorCode::config_invalid},
      {R"("model_type": "gemma3n_text", "activation_sparsity_pattern": [0.5])", "/activation_sparsity_pattern",
       ErrorCode::config_invalid},
      {R"("model_type": "gemma3n_text", "activation_sparsity_pattern": [0.5, 0, 0, 1])", "/activation_sparsity_pattern",
       ErrorCode::config_invalid},
      {R"("model_type": "gemma4_text", "num_kv_shared_layers": 4)", "/num_kv_shared_layers", ErrorCode::config_invalid},
      {R"("model_type": "gemma4_text", "global_head_dim": 7)", "/per_layer_config", ErrorCode::config_invalid},
      {R"("model_type": "gemma4_text", "use_bidirectional_attention": "all")", "/use_bidirectional_attention",
       ErrorCode::not_implemented},
      {R"("model_type": "gemma", "use_bidirectional_attention": true)", "/use_bidirectional_attention",
       ErrorCode::not_implemented},
  };
  for (const auto& [config, where, code] : kCases) {
    const auto found = read(config);
    REQUIRE_MESSAGE(!found, std::string(config));
    CHECK(found.error().where == where);
    CHECK(found.error().code == code);
  }
}

TEST_CASE("tokens are checked before anything runs") {
  ForwardPass pass(accepted(R"("model_type": "llama", "max_position_embeddings": 4)"), InputPrecision::float32);
  const std::vector<int32_t> good = {0, 99, 3, 4}, beyond = {0, 1, 2, 100}, negative = {0, -1}, longer(5), none;
  using Lengths = std::vector<uint32_t>;
  for (const Lengths& lengths : {Lengths{2, 2}, {1, 3}, {4}, {1, 2, 1}}) {
    CHECK(bool(pass.set_tokens(good, lengths)));
    CHECK(pass.sequences() == lengths.size());
  }
  const std::pair<const std::vector<int32_t>*, Lengths> kRefused[] = {
      {&good, {1, 1, 1, 1}}, {&good, {3, 3}},  {&good, {2}},   {&good, {4, 0}},
      {&beyond, {2, 2}},     {&negative, {2}}, {&longer, {5}}, {&none, {}},
  };
  for (const auto& [tokens, lengths] : kRefused) {
    const Status status = pass.set_tokens(*tokens, lengths);
    REQUIRE_FALSE(status);
    CHECK(status.error().code == ErrorCode::argument_invalid);
  }
  const Lengths pairs = {1, 3};
  CHECK(pass.set_tokens(beyond, pairs).error().message.find("token 100 at position 2 of sequence 1") !=
        std::string::npos);
}

}  // namespace
}  // namespace wasmquant::model
