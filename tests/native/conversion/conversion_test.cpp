// Names, rows, keys and refusals of conversions to GGUF.
#include "gguf_conversion/conversion.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <string>

#include "core/message.h"
#include "gguf_conversion/family.h"

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
  return match.row == nullptr ? "?" : match.name;
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
      {"llama", "model.layers.0.mlp.experts.1.down_proj.weight", "?"},
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
  check_refused(R"({"model_type": "mamba"})", {}, ErrorCode::format_unsupported, "/model_type", "gpt2, bert");
  check_refused("[]", {}, ErrorCode::format_unsupported, "/model_type", "models of type");
  check_refused(R"({"model_type": "gemma3_text", "architectures": ["Gemma3TextModel"]})", {},
                ErrorCode::format_unsupported, "/model_type", "Gemma3TextModel");
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
