// Names, rows, keys and refusals of conversions to GGUF.
#include "gguf_conversion/conversion.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <string>

#include "core/message.h"
#include "gguf_conversion/architectures/family.h"

using namespace wasmquant;
using namespace wasmquant::conversion;

namespace {

using Shape = std::vector<uint64_t>;
using ConversionTensors = std::vector<std::pair<std::string, Shape>>;

Result<GgufConversion> run(const std::string& config, const ConversionTensors& tensors, DiagnosticList& diagnostics) {
  std::vector<SourceTensor> sources;
  for (const auto& [name, shape] : tensors) sources.push_back({name, shape});
  const auto document = json::parse(config, json::kPython);
  return convert({"model", &document, {}, {}}, sources, diagnostics);
}
Result<GgufConversion> run(const std::string& config, const ConversionTensors& tensors) {
  DiagnosticList diagnostics;
  return run(config, tensors, diagnostics);
}

void check_refused(const std::string& config, const ConversionTensors& tensors, ErrorCode code, const char* where,
                   const char* message) {
  const auto result = run(config, tensors);
  REQUIRE_FALSE(result);
  CHECK_MESSAGE(name_of(result.error().code) == name_of(code), result.error().message);
  CHECK_MESSAGE(result.error().where.find(where) != std::string::npos, result.error().where);
  CHECK_MESSAGE(result.error().message.find(message) != std::string::npos, result.error().message);
}

const std::string kLlama =
    R"("hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
       "intermediate_size": 32, "max_position_embeddings": 64, "rms_norm_eps": 1e-5)";
std::string llama(const std::string& type, const std::string& more = "") {
  return "{\"model_type\": \"" + type + "\"," + kLlama + more + "}";
}
const ConversionTensors kEmbedding = {{"model.embed_tokens.weight", {48, 16}}};

ConversionTensors with(ConversionTensors tensors) {
  tensors.insert(tensors.begin(), kEmbedding.begin(), kEmbedding.end());
  return tensors;
}

std::string target(const char* model_type, const char* name) {
  json::Value config;
  config.set("model_type", model_type);
  const Family* family = family_of(config);
  REQUIRE(family != nullptr);
  const TensorMatch match = match_tensor(*family, name);
  return !match.is_known ? "?" : match.name;
}

}  // namespace

TEST_CASE("conversion: tensors get llama.cpp's names") {
  struct Case {
    const char *model_type, *source, *target;
  };
  const Case cases[] = {
      {"llama", "model.embed_tokens.weight", "token_embd.weight"},
      {"llama", "model.norm.weight", "output_norm.weight"},
      {"llama", "lm_head.weight", "output.weight"},
      {"llama", "model.layers.31.self_attn.q_proj.weight", "blk.31.attn_q.weight"},
      {"llama", "model.layers.0.self_attn.o_proj.weight", "blk.0.attn_output.weight"},
      {"llama", "model.layers.0.post_attention_layernorm.weight", "blk.0.ffn_norm.weight"},
      {"llama", "model.layers.0.self_attn.rotary_emb.inv_freq", ""},
      {"llama", "model.layers.0.mlp.experts.1.down_proj.scales", "?"},
      {"llama", "model.layers..mlp.down_proj.weight", "?"},
      {"llama", "model.layers.1234567.mlp.down_proj.weight", "?"},
      {"llama", "model.layers.0.mlp.down_proj.scales", "?"},
      {"llama", "weight", "?"},
      {"mistral", "layers.3.mlp.gate_proj.weight", "blk.3.ffn_gate.weight"},
      {"qwen2", "model.layers.0.self_attn.k_proj.bias", "blk.0.attn_k.bias"},
      {"qwen3", "model.layers.0.self_attn.q_norm.weight", "blk.0.attn_q_norm.weight"},
      {"gemma", "lm_head.weight", ""},
      {"gemma", "model.layers.0.post_attention_layernorm.weight", "blk.0.ffn_norm.weight"},
      {"gemma2", "model.layers.0.post_attention_layernorm.weight", "blk.0.post_attention_norm.weight"},
      {"gemma2", "model.layers.0.pre_feedforward_layernorm.weight", "blk.0.ffn_norm.weight"},
      {"gemma3", "language_model.model.layers.0.post_feedforward_layernorm.weight", "blk.0.post_ffw_norm.weight"},
      {"gemma3", "model.language_model.layers.0.self_attn.k_norm.weight", "blk.0.attn_k_norm.weight"},
      {"gemma3", "vision_tower.vision_model.embeddings.patch_embedding.weight", ""},
      {"gpt2", "h.11.attn.c_attn.weight", "blk.11.attn_qkv.weight"},
      {"gpt2", "transformer.h.0.mlp.c_proj.bias", "blk.0.ffn_down.bias"},
      {"gpt2", "transformer.wpe.weight", "position_embd.weight"},
      {"gpt2", "h.0.attn.bias", ""},
      {"gpt2", "h.0.attn.masked_bias", ""},
      {"bert", "embeddings.LayerNorm.gamma", "token_embd_norm.weight"},
      {"bert", "bert.encoder.layer.0.attention.self.query.bias", "blk.0.attn_q.bias"},
      {"bert", "encoder.layer.0.attention.output.LayerNorm.weight", "blk.0.attn_output_norm.weight"},
      {"bert", "encoder.layer.0.output.dense.weight", "blk.0.ffn_down.weight"},
      {"bert", "embeddings.position_ids", ""},
      {"bert", "cls.predictions.transform.dense.weight", ""},
      {"bert", "classifier.weight", "?"},
  };
  for (const Case& c : cases) CHECK_MESSAGE(target(c.model_type, c.source) == c.target, c.source);
}

TEST_CASE("conversion: only the llama architecture interleaves rows of heads") {
  const ConversionTensors tensors = with({{"model.layers.0.self_attn.q_proj.weight", {16, 16}},
                                          {"model.layers.0.self_attn.k_proj.weight", {8, 16}},
                                          {"model.layers.0.self_attn.q_proj.bias", {16}},
                                          {"model.layers.0.self_attn.v_proj.weight", {8, 16}}});
  const auto llama_model = run(llama("llama"), tensors);
  REQUIRE(llama_model);
  REQUIRE(llama_model->tensors.size() == 5);
  const uint64_t expected[] = {0, 2, 1, 3, 4, 6, 5, 7};  // heads of four rows
  for (const size_t i : {1, 2, 3}) {
    const ConvertedTensor& tensor = llama_model->tensors[i];
    CHECK(tensor.source == i);
    CHECK(tensor.rearrangement == Rearrangement::interleave);
    for (uint64_t row = 0; row < 8; ++row) CHECK(tensor.source_row(row) == expected[row]);
  }
  CHECK(llama_model->tensors[4].rearrangement == Rearrangement::none);
  CHECK(llama_model->tensors[4].source_row(5) == 5);
  const auto qwen = run(llama("qwen2"), tensors);
  REQUIRE(qwen);
  for (const ConvertedTensor& tensor : qwen->tensors) CHECK(tensor.rearrangement == Rearrangement::none);
}

TEST_CASE("conversion: Gemma's norms add one, GPT-2's linears are transposed") {
  const ConversionTensors norms = with({{"model.norm.weight", {16}}, {"model.layers.0.self_attn.q_norm.weight", {4}}});
  const auto gemma = run(llama("gemma3_text", R"(,"head_dim": 4)"), norms), qwen = run(llama("qwen3"), norms);
  REQUIRE(gemma);
  REQUIRE(qwen);
  for (const size_t i : {0, 1, 2}) {
    CHECK(gemma->tensors[i].plus_one == (i > 0));
    CHECK_FALSE(qwen->tensors[i].plus_one);
  }
  const auto gpt2 =
      run(R"({"model_type": "gpt2", "n_embd": 16, "n_layer": 1, "n_head": 4, "n_positions": 32})",
          {{"wte.weight", {48, 16}}, {"h.0.attn.c_attn.weight", {16, 48}}, {"h.0.attn.c_attn.bias", {48}}});
  REQUIRE(gpt2);
  CHECK(gpt2->tensors[1].rearrangement == Rearrangement::transpose);
  CHECK(gpt2->tensors[1].shape == Shape{48, 16});
  CHECK(gpt2->tensors[2].rearrangement == Rearrangement::none);
  CHECK(gpt2->metadata.find_count("gpt2.feed_forward_length") == 64);
  CHECK(*gpt2->metadata.find_number("gpt2.attention.layer_norm_epsilon") == doctest::Approx(1e-5));
  CHECK(gpt2->metadata.find("gpt2.rope.freq_base") == nullptr);
}

TEST_CASE("conversion: keys of config.json") {
  const auto model = run(llama("mistral", R"(,"rope_theta": 1000000.0, "sliding_window": 4096)"), kEmbedding);
  REQUIRE(model);
  const gguf::Metadata& metadata = model->metadata;
  CHECK(metadata.find_text("general.architecture") == "llama");
  CHECK(metadata.find_text("general.name") == "model");
  CHECK(metadata.find_count("llama.context_length") == 64);
  CHECK(metadata.find_count("llama.embedding_length") == 16);
  CHECK(metadata.find_count("llama.block_count") == 2);
  CHECK(metadata.find_count("llama.feed_forward_length") == 32);
  CHECK(metadata.find_count("llama.attention.head_count") == 4);
  CHECK(metadata.find_count("llama.attention.head_count_kv") == 2);
  CHECK(metadata.find_count("llama.rope.dimension_count") == 4);
  CHECK(metadata.find_count("llama.vocab_size") == 48);
  CHECK(metadata.find_number("llama.rope.freq_base") == 1e6);
  CHECK(metadata.find("llama.attention.sliding_window") == nullptr);
  CHECK(metadata.find_text("tokenizer.ggml.model") == "no_vocab");

  // The newer spelling, and what Gemma 3 leaves to its defaults.
  const auto gemma = run(R"({"model_type": "gemma3", "text_config": {"model_type": "gemma3_text", "hidden_size": 16,
      "num_hidden_layers": 2, "intermediate_size": 32, "rope_parameters": {"full_attention": {"rope_theta": 500000,
      "rope_type": "linear", "factor": 8}, "sliding_attention": {"rope_theta": 10000, "rope_type": "default"}}}})",
                         kEmbedding);
  REQUIRE(gemma);
  CHECK(gemma->metadata.find_count("gemma3.attention.head_count") == 8);
  CHECK(gemma->metadata.find_count("gemma3.attention.head_count_kv") == 4);
  CHECK(gemma->metadata.find_count("gemma3.attention.key_length") == 256);
  CHECK(gemma->metadata.find_count("gemma3.attention.sliding_window") == 4096);
  CHECK(gemma->metadata.find_count("gemma3.context_length") == 131072);
  CHECK(gemma->metadata.find_number("gemma3.rope.freq_base") == 500000);
  CHECK(gemma->metadata.find_number("gemma3.rope.freq_base_swa") == 10000);
  CHECK(gemma->metadata.find_text("gemma3.rope.scaling.type") == "linear");
  CHECK(gemma->metadata.find_number("gemma3.rope.scaling.factor") == 8);

  // llama.cpp derives the scale of attention from the shapes.
  for (const bool is_lost : {false, true}) {
    const std::string scalar = is_lost ? "8" : "4";
    DiagnosticList diagnostics;
    REQUIRE(run(llama("gemma2", R"(,"head_dim": 4, "query_pre_attn_scalar": )" + scalar), kEmbedding, diagnostics));
    bool found = false;
    for (const Diagnostic& diagnostic : diagnostics.items()) found |= diagnostic.code == "attention-scale-lost";
    CHECK(found == is_lost);
  }

  const auto yarn = run(llama("qwen3", R"(,"rope_scaling": {"type": "yarn", "factor": 4.0, "beta_fast": 32,
                                          "original_max_position_embeddings": 32768})"),
                        kEmbedding);
  REQUIRE(yarn);
  CHECK(yarn->metadata.find_text("qwen3.rope.scaling.type") == "yarn");
  CHECK(yarn->metadata.find_count("qwen3.rope.scaling.original_context_length") == 32768);
  CHECK(yarn->metadata.find_number("qwen3.rope.scaling.yarn_beta_fast") == 32);

  const auto bert =
      run(R"({"model_type": "bert", "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 4,
      "intermediate_size": 32, "max_position_embeddings": 64})",
          {{"embeddings.word_embeddings.weight", {48, 16}}, {"embeddings.token_type_embeddings.weight", {2, 16}}});
  REQUIRE(bert);
  CHECK(bert->metadata.find_number("bert.attention.causal") == 0);
  CHECK(bert->metadata.find_count("tokenizer.ggml.token_type_count") == 2);
}

TEST_CASE("conversion: Llama 3.1's rotary factors are a tensor") {
  const auto model = run(llama("llama", R"(,"head_dim": 128, "rope_theta": 500000.0, "rope_scaling": {"factor": 8.0,
      "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192, "rope_type": "llama3"})"),
                         kEmbedding);
  REQUIRE(model);
  const ConvertedTensor& tensor = model->tensors[1];
  CHECK(tensor.source == ConvertedTensor::kGenerated);
  CHECK(tensor.name == "rope_freqs.weight");
  REQUIRE(tensor.shape == Shape{64});
  std::vector<float> factors(64);
  REQUIRE(tensor.data.size() == 256);
  std::memcpy(factors.data(), tensor.data.data(), 256);
  for (size_t i = 0; i < 64; ++i) {  // the formula, in the C library's functions
    const double wavelength = 2 * 3.14159265358979 * std::pow(500000.0, static_cast<double>(i) / 64);
    double expected = 1;
    if (wavelength > 8192) expected = 8;
    if (wavelength <= 8192 && wavelength >= 2048) {
      const double mix = (8192 / wavelength - 1) / 3;
      expected = 1 / ((1 - mix) / 8 + mix);
    }
    CHECK(factors[i] == doctest::Approx(expected).epsilon(1e-6));
  }
  CHECK(factors[28] == 1);
  CHECK(factors[36] == 8);
}

TEST_CASE("conversion: what cannot be converted is named") {
  check_refused("{", kEmbedding, ErrorCode::json_invalid, "config.json: byte 1", "");
  check_refused(R"({"model_type": "mamba9"})", {}, ErrorCode::format_unsupported, "/model_type",
                "such as mamba, mamba2");
  check_refused("[]", {}, ErrorCode::format_unsupported, "/model_type", "models of type");
  check_refused(R"({"model_type": "llama", "hidden_size": 16})", {}, ErrorCode::argument_invalid,
                "/max_position_embeddings", "needs this key");
  check_refused(llama("llama", R"(,"head_dim": 1000000)"), {}, ErrorCode::argument_invalid, "/head_dim", "1000000");
  check_refused(R"({"model_type": "llama", "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4,
      "num_key_value_heads": 3, "intermediate_size": 32, "max_position_embeddings": 64})",
                {}, ErrorCode::argument_invalid, "/num_key_value_heads", "4 heads do not share 3");
  check_refused(llama("llama", R"(,"rope_scaling": {"type": "longrope", "factor": 4})"), {},
                ErrorCode::format_unsupported, "/rope_scaling", "\"longrope\"");
  check_refused(llama("llama"), {}, ErrorCode::tensor_missing, "token_embd.weight", "token embedding");
  check_refused(llama("llama"), with({{"model.layers.0.mlp.experts.0.w1.weight", {4, 4}}}),
                ErrorCode::format_unsupported, "experts.0.w1", "no place");
  check_refused(llama("llama"), with({{"model.layers.2.mlp.up_proj.weight", {4, 4}}}), ErrorCode::shape_mismatch,
                "layers.2", "has 2 layers");
  check_refused(llama("llama"), with({{"model.layers.0.self_attn.q_proj.weight", {12, 16}}}), ErrorCode::shape_mismatch,
                "q_proj", "12 rows are not 4 heads");
  check_refused(llama("llama"), with({{"embed_tokens.weight", {48, 16}}}), ErrorCode::tensor_duplicate, "embed_tokens",
                "token_embd.weight");
  check_refused(llama("llama"), {{"model.embed_tokens.weight", {uint64_t{1} << 40, 16}}}, ErrorCode::shape_mismatch,
                "embed_tokens", "less than 2^32");
  check_refused(llama("llama"), {{"model.embed_tokens.weight", {1 << 21, 16}}}, ErrorCode::format_unsupported,
                "tokenizer.json", "2097152 tokens");
}

TEST_CASE("conversion: vision towers are left out with a note") {
  DiagnosticList diagnostics;
  const auto model = run(llama("gemma3", R"(,"head_dim": 4)"),
                         {{"language_model.model.embed_tokens.weight", {48, 16}},
                          {"vision_tower.encoder.layers.0.mlp.fc1.weight", {4, 4}},
                          {"multi_modal_projector.mm_input_projection_weight", {4, 4}}},
                         diagnostics);
  REQUIRE(model);
  CHECK(model->tensors.size() == 1);
  REQUIRE(diagnostics.items().size() == 2);
  CHECK(diagnostics.items()[0].code == "tensors-left-out");
  CHECK(diagnostics.items()[1].code == "tokenizer-missing");
}

namespace {

const char* const kExpertKeys = R"(, "num_experts": 2, "num_experts_per_tok": 1, "moe_intermediate_size": 8)";

}  // namespace

TEST_CASE("conversion: experts are stacked in the order of their numbers") {
  const auto model =
      run(llama("qwen3_moe", kExpertKeys), with({{"model.layers.0.mlp.experts.1.up_proj.weight", {8, 16}},
                                                 {"model.layers.0.mlp.experts.0.up_proj.weight", {8, 16}},
                                                 {"model.layers.0.mlp.gate.weight", {2, 16}}}));
  REQUIRE_MESSAGE(bool(model), model.error().message);
  REQUIRE(model->tensors.size() == 3);
  CHECK(model->tensors[1].name == "blk.0.ffn_gate_inp.weight");
  const ConvertedTensor& stack = model->tensors[2];
  CHECK(stack.name == "blk.0.ffn_up_exps.weight");
  CHECK(stack.shape == Shape{2, 8, 16});
  REQUIRE(stack.rows.size() == 2);
  CHECK(stack.source == 2);
  CHECK(stack.rows[0].source == 2);
  CHECK(stack.rows[1].source == 1);
  CHECK(stack.rows[1].count == 8);
  CHECK(model->metadata.find_count("qwen3moe.expert_feed_forward_length") == 8);
  CHECK(model->metadata.find_count("qwen3moe.expert_count") == 2);
}

TEST_CASE("conversion: a gap, a second one and another shape among experts are errors") {
  const std::string config = llama("qwen3_moe", kExpertKeys);
  const auto expert = [](const char* module, const Shape& shape) {
    return std::pair<std::string, Shape>{text_of("{}.weight", module), shape};
  };
  const auto first = expert("model.layers.0.mlp.experts.0.up_proj", {8, 16});
  check_refused(config, with({first, expert("model.layers.0.mlp.experts.2.up_proj", {8, 16})}),
                ErrorCode::tensor_missing, "experts.2.up_proj", "end with 1");
  check_refused(config, with({first, expert("layers.0.mlp.experts.0.up_proj", {8, 16})}), ErrorCode::tensor_duplicate,
                "experts.0.up_proj", "another expert");
  check_refused(config, with({first, expert("model.layers.0.mlp.experts.1.up_proj", {4, 16})}),
                ErrorCode::shape_mismatch, "experts.1.up_proj", "another shape");
}

TEST_CASE("conversion: gate and up of all experts become two tensors") {
  const auto model =
      run(llama("qwen3_moe", kExpertKeys), with({{"model.layers.0.mlp.experts.gate_up_proj", {2, 16, 16}}}));
  REQUIRE_MESSAGE(bool(model), model.error().message);
  REQUIRE(model->tensors.size() == 3);
  const uint64_t first[2][2] = {{0, 16}, {8, 24}};
  for (const size_t half : {0, 1}) {
    const ConvertedTensor& tensor = model->tensors[1 + half];
    CHECK(tensor.name == (half == 0 ? "blk.0.ffn_gate_exps.weight" : "blk.0.ffn_up_exps.weight"));
    CHECK(tensor.shape == Shape{2, 8, 16});
    REQUIRE(tensor.rows.size() == 2);
    for (const size_t expert : {0, 1}) CHECK(tensor.rows[expert].first == first[half][expert]);
    CHECK(tensor.rows[0].count == 8);
  }
  check_refused(llama("qwen3_moe", kExpertKeys), with({{"model.layers.0.mlp.experts.gate_up_proj", {2, 15, 16}}}),
                ErrorCode::shape_mismatch, "gate_up_proj", "two halves");
}

TEST_CASE("conversion: rows of queries, keys and values follow each other") {
  // Four heads of four rows each of a query, a key and a value.
  const auto model = run(llama("gpt_neox"), {{"gpt_neox.embed_in.weight", {48, 16}},
                                             {"gpt_neox.layers.0.attention.query_key_value.weight", {48, 16}},
                                             {"gpt_neox.layers.0.attention.query_key_value.bias", {48}}});
  REQUIRE_MESSAGE(bool(model), model.error().message);
  REQUIRE(model->tensors.size() == 3);
  const uint64_t firsts[] = {0, 12, 24, 36, 4, 16, 28, 40, 8, 20, 32, 44};
  for (const size_t number : {1, 2}) {
    const ConvertedTensor& tensor = model->tensors[number];
    CHECK(tensor.shape == (number == 1 ? Shape{48, 16} : Shape{48}));
    REQUIRE(tensor.rows.size() == 12);
    for (size_t i = 0; i < 12; ++i) CHECK(tensor.rows[i].first == firsts[i]);
    CHECK(tensor.rows[0].count == 4);
  }
  check_refused(llama("gpt_neox"), {{"gpt_neox.layers.0.attention.query_key_value.weight", {47, 16}}},
                ErrorCode::shape_mismatch, "query_key_value", "47 rows");
}

TEST_CASE("conversion: heads of values that share one of keys take turns") {
  const std::string config = llama("qwen3_5_text", R"(, "linear_num_key_heads": 2, "linear_num_value_heads": 4,
      "linear_key_head_dim": 2, "linear_value_head_dim": 4, "linear_conv_kernel_dim": 4)");
  const std::string layer = "model.layers.0.linear_attn.";
  const auto model = run(config, with({{layer + "in_proj_qkv.weight", {24, 16}},
                                       {layer + "out_proj.weight", {16, 16}},
                                       {layer + "A_log", {4}},
                                       {"mtp.fc.weight", {16, 32}}}));
  REQUIRE_MESSAGE(bool(model), model.error().message);
  REQUIRE(model->tensors.size() == 4);
  const uint64_t rows[] = {0, 4, 8, 16, 12, 20};  // eight of queries and keys stay
  REQUIRE(model->tensors[1].rows.size() == 6);
  for (size_t i = 0; i < 6; ++i) CHECK(model->tensors[1].rows[i].first == rows[i]);
  const ConvertedTensor& columns = model->tensors[2];
  CHECK(columns.rounds == 16);
  REQUIRE(columns.views.size() == 4);
  CHECK(columns.views[1] == StridedView{8, {1, 1, 4}, {0, 0, 1}});
  CHECK(model->tensors[3].name == "blk.0.ssm_a");
  CHECK(model->tensors[3].is_logarithm);
  CHECK(model->tensors[3].rows[1].first == 2);
  check_refused(llama("qwen3_5_text"), with({{layer + "A_log", {4}}}), ErrorCode::argument_invalid, "linear_",
                "the model needs this key");
}

TEST_CASE("conversion: latent keys and values become two stacks, the keys transposed") {
  const auto model = run(llama("deepseek_v2", R"(, "kv_lora_rank": 8, "qk_rope_head_dim": 2, "qk_nope_head_dim": 4,
      "v_head_dim": 6)"),
                         with({{"model.layers.0.self_attn.kv_b_proj.weight", {40, 8}}}));
  REQUIRE_MESSAGE(bool(model), model.error().message);
  REQUIRE(model->tensors.size() == 3);
  CHECK(model->tensors[1].shape == Shape{4, 8, 4});
  CHECK(model->tensors[2].shape == Shape{4, 6, 8});
  CHECK(model->tensors[1].rows[1].first == 10);
  CHECK(model->tensors[1].rows[1].is_transposed);
  CHECK(model->tensors[2].rows[0].first == 4);
  CHECK_FALSE(model->tensors[2].rows[0].is_transposed);
  CHECK(model->metadata.find_count("deepseek2.attention.head_count_kv") == 1);
  CHECK(model->metadata.find_count("deepseek2.attention.key_length") == 10);
}

TEST_CASE("conversion: Hunyuan's rotary scaling is another base") {
  const auto model =
      run(llama("hunyuan_v1_dense", R"(, "rope_theta": 1e4, "rope_scaling": {"type": "dynamic", "alpha": 100})"),
          kEmbedding);
  REQUIRE_MESSAGE(bool(model), model.error().message);
  CHECK(model->metadata.find_number("hunyuan-dense.rope.freq_base") == 1e8f);  // 100^(4 / 2) times
  CHECK(model->metadata.find_count("hunyuan-dense.context_length") == 262144);
}

TEST_CASE("conversion: gate and up of gpt-oss alternate") {
  const auto model = run(llama("gpt_oss", R"(, "sliding_window": 8)"),
                         with({{"model.layers.0.mlp.experts.gate_up_proj", {2, 16, 8}},
                               {"model.layers.0.mlp.experts.gate_up_proj_bias", {2, 8}}}));
  REQUIRE_MESSAGE(bool(model), model.error().message);
  REQUIRE(model->tensors.size() == 5);
  CHECK(model->tensors[2].name == "blk.0.ffn_up_exps.weight");
  CHECK(model->tensors[2].shape == Shape{2, 4, 16});
  CHECK(model->tensors[2].rounds == 2);
  CHECK(model->tensors[2].views[0] == StridedView{1, {1, 4, 16}, {0, 2, 8}});
  CHECK(model->tensors[4].shape == Shape{2, 4});
  CHECK(model->tensors[4].views[0] == StridedView{1, {1, 4, 1}, {0, 2, 8}});
}

TEST_CASE("conversion: keys of single architectures") {
  const auto glm = run(llama("glm4_moe", R"(, "n_routed_experts": 4, "num_experts_per_tok": 2, "n_shared_experts": 1,
      "moe_intermediate_size": 8, "first_k_dense_replace": 0, "routed_scaling_factor": 1.5, "norm_topk_prob": true,
      "rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.5})"),
                       kEmbedding);
  REQUIRE_MESSAGE(bool(glm), glm.error().message);
  CHECK(glm->metadata.find_count("glm4moe.rope.dimension_count") == 2);
  CHECK(glm->metadata.find_count("glm4moe.leading_dense_block_count") == 0);
  CHECK(glm->metadata.find_count("glm4moe.expert_gating_func") == 2);
  CHECK(glm->metadata.find_number("glm4moe.expert_weights_scale") == 1.5);

  const std::string lfm2 = R"(, "conv_L_cache": 3, "block_auto_adjust_ff_dim": true, "block_ffn_dim_multiplier": 1.0,
      "block_multiple_of": 16)";
  const auto hybrid = run(llama("lfm2", lfm2 + R"(, "layer_types": ["conv", "full_attention"])"),
                          with({{"model.layers.0.conv.conv.weight", {16, 1, 3}}}));
  REQUIRE_MESSAGE(bool(hybrid), hybrid.error().message);
  CHECK(hybrid->tensors[1].shape == Shape{16, 3});
  CHECK(hybrid->metadata.find_count("lfm2.feed_forward_length") == 32);
  REQUIRE(hybrid->metadata.find("lfm2.attention.head_count_kv") != nullptr);
  CHECK(hybrid->metadata.find("lfm2.attention.head_count_kv")->type == gguf::ValueType::array);
  check_refused(llama("lfm2", lfm2), kEmbedding, ErrorCode::argument_invalid, "num_key_value_heads", "layer_types");
  check_refused(llama("qwen3_moe", R"(, "num_experts": 2)"), kEmbedding, ErrorCode::argument_invalid,
                "moe_intermediate_size", "needs this key");
  check_refused(llama("granite", R"(, "attention_multiplier": "a", "embedding_multiplier": 1)"), kEmbedding,
                ErrorCode::argument_invalid, "attention_multiplier", "a number");
  check_refused(llama("qwen3_moe", R"(, "moe_intermediate_size": 1.5)"), kEmbedding, ErrorCode::argument_invalid,
                "moe_intermediate_size", "whole number");
}

TEST_CASE("conversion: Falcon-H1's weights are multiplied by its multipliers") {
  const std::string more =
      R"(, "mamba_d_ssm": 8, "mamba_d_head": 4, "mamba_n_groups": 1, "mamba_d_state": 2, "mamba_d_conv": 4, "key_multiplier": 0.5,
         "attention_in_multiplier": 3, "mlp_multipliers": [0.25, 4], "ssm_multipliers": )";
  const ConversionTensors tensors = with({{"model.layers.0.self_attn.k_proj.weight", {8, 16}},
                                          {"model.layers.0.feed_forward.down_proj.weight", {16, 32}},
                                          {"model.layers.0.mamba.in_proj.weight", {22, 16}}});
  const auto out = run(llama("falcon_h1", more + "[1, 2, 3, 4, 5]"), tensors);
  REQUIRE(out);
  CHECK(out->tensors[0].factors.empty());
  CHECK(out->tensors[1].factors.size() == 2);
  CHECK(out->tensors[1].factors[0] == std::vector<float>{0.5f});
  CHECK(out->tensors[2].factors[0] == std::vector<float>{4});
  const std::vector<float>& rows = out->tensors[3].factors[0];
  REQUIRE(rows.size() == 22);
  CHECK((rows[7] == 1 && rows[8] == 2 && rows[16] == 3 && rows[18] == 4 && rows[20] == 5));
  check_refused(llama("falcon_h1", more + "[1, 2]"), tensors, ErrorCode::argument_invalid, "/ssm_multipliers",
                "5 of them");
}

TEST_CASE("conversion: a table of fewer tokens gets zeros") {
  const auto out =
      run(llama("gemma3n_text",
                R"(, "vocab_size": 48, "altup_active_idx": 0, "altup_num_inputs": 4, "hidden_size_per_layer_input": 4,
      "num_kv_shared_layers": 0, "sliding_window": 8, "activation_sparsity_pattern": [0.95, 0.0], "layer_types": ["sliding_attention", "full_attention"])"),
          with({{"model.embed_tokens_per_layer.weight", {40, 8}}}));
  REQUIRE_MESSAGE(bool(out), out.error().message);
  CHECK(out->tensors[1].shape == Shape{48, 8});
  CHECK(out->tensors[1].empty_rows == 8);
}

TEST_CASE("conversion: numbers of an activation become keys") {
  std::vector<SourceTensor> sources;
  const Shape table = {48, 16}, one = {1};
  sources.push_back({"model.embed_tokens.weight", table});
  for (const char* name : {"model.layers.0.mlp.act_fn.alpha_p", "model.layers.0.mlp.act_fn.alpha_n",
                           "model.layers.1.mlp.act_fn.alpha_p", "model.layers.1.mlp.act_fn.alpha_n"})
    sources.push_back({name, one, 0.25f});
  DiagnosticList diagnostics;
  const auto document = json::parse(llama("apertus"), json::kPython);
  const auto out = convert({"model", &document, {}, {}}, sources, diagnostics);
  REQUIRE(out);
  CHECK(out->metadata.find("xielu.alpha_p") != nullptr);
  CHECK(out->metadata.find("xielu.beta") != nullptr);
  CHECK(out->tensors.size() == 1);
  sources.pop_back();
  const auto lacking = convert({"model", &document, {}, {}}, sources, diagnostics);
  REQUIRE_FALSE(lacking);
  CHECK(lacking.error().code == ErrorCode::tensor_missing);
}

TEST_CASE("conversion: BERT with slopes for positions is jina-embeddings-v2") {
  json::Value config;
  config.set("model_type", "bert");
  CHECK(std::string(family_of(config)->architecture) == "bert");
  config.set("position_embedding_type", "alibi");
  CHECK(std::string(family_of(config)->architecture) == "jina-bert-v2");
}

TEST_CASE("conversion: a family without a row is refused by its name") {
  check_refused(llama("my_type"), kEmbedding, ErrorCode::format_unsupported, "model_type", "\"my_type\"");
  check_refused(llama("my_type"), kEmbedding, ErrorCode::format_unsupported, "model_type", "compressed-tensors");
  check_refused(llama("qwen3_9"), kEmbedding, ErrorCode::format_unsupported, "model_type", "such as qwen3_");
}

TEST_CASE("conversion: layers without rotary embeddings are those of llama.cpp, or there is a warning") {
  for (const bool is_fourth : {true, false}) {
    DiagnosticList diagnostics;
    const auto model =
        run(llama("smollm3", is_fourth ? R"(, "no_rope_layers": [1, 1])" : R"(, "no_rope_layers": [1, 0])"), kEmbedding,
            diagnostics);
    REQUIRE_MESSAGE(bool(model), model.error().message);
    bool warns = false;
    for (const Diagnostic& d : diagnostics.take()) warns = warns || d.where == "config.json: /no_rope_layers";
    CHECK(warns != is_fourth);
  }
}
