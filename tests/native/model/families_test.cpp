// One tiny model a family against transformers (tests/files/make_forward.py).
#include <algorithm>
#include <cmath>

#include "core/message.h"
#include "model/model_folder.h"

namespace wasmquant::testing {
namespace {

constexpr const char* kFamilies[] = {
    "llama",       "llama_linear", "mistral",     "qwen2",       "qwen3",      "gemma",       "gemma2",
    "gemma3_text", "gpt_oss",      "deepseek_v2", "deepseek_v3", "lfm2_moe",   "qwen3_next",  "granitemoehybrid",
    "falcon_h1",   "nemotron_h",   "llama4_text", "gemma4_text", "gemma4_moe", "gemma3n_text"};
constexpr size_t kFamiliesLength = 24;

TEST_CASE("logits of every family match transformers") {
  for (const char* family : kFamilies) {
    const std::string folder = std::string("files/forward/") + family;
    const ModelFolder model(folder), reference = file_of(folder + "/expected.safetensors");
    std::vector<int32_t> tokens;
    for (const int64_t token : reference.tensor<int64_t>("input_ids")) tokens.push_back(static_cast<int32_t>(token));
    const std::vector<float> expected = reference.tensor<float>("logits");
    std::vector<float> logits;
    const auto session = run_forward(model, tokens, kFamiliesLength, 1 << 20, model::InputPrecision::float32, nullptr,
                                     &logits, ForwardUse::run);
    double largest = 0;
    for (size_t i = 0; i < logits.size(); ++i) largest = std::max(largest, std::fabs(double{logits[i]} - expected[i]));
    CHECK_MESSAGE(largest < 1e-4, std::string(family), ": largest difference ", largest);

    const size_t vocabulary = expected.size() / tokens.size();
    double nats = 0;
    for (size_t i = 0; i + 1 < kFamiliesLength; ++i) {
      const float* row = expected.data() + i * vocabulary;
      double sum = 0;
      for (size_t j = 0; j < vocabulary; ++j) sum += std::exp(double{row[j]});
      nats += std::log(sum) - row[tokens[i + 1]];
    }
    CHECK_MESSAGE(std::fabs(session->pass().loss_of(0) - nats) < 1e-4, std::string(family), ": loss ",
                  session->pass().loss_of(0));
  }
}

TEST_CASE("embeddings of encoders match transformers") {
  for (const char* family : {"bert", "roberta", "camembert", "distilbert", "t5", "umt5"}) {
    const std::string folder = std::string("files/forward/") + family;
    const ModelFolder model(folder), reference = file_of(folder + "/expected.safetensors");
    std::vector<int32_t> tokens;
    for (const int64_t token : reference.tensor<int64_t>("input_ids")) tokens.push_back(static_cast<int32_t>(token));
    const auto session = run_forward(model, tokens, kFamiliesLength, 1 << 10, model::InputPrecision::float32, nullptr,
                                     nullptr, ForwardUse::embed);
    for (const auto& [name, pooling] : {std::pair{"mean", model::Pooling::mean}, {"first", model::Pooling::first}}) {
      const std::vector<float> expected = reference.tensor<float>(name), found = session->pass().embeddings(pooling);
      REQUIRE(found.size() == expected.size());
      double largest = 0;
      for (size_t i = 0; i < found.size(); ++i) largest = std::max(largest, std::fabs(double{found[i]} - expected[i]));
      CHECK_MESSAGE(largest < 1e-5, std::string(family), ", ", std::string(name), ": largest difference ", largest);
    }
  }
}

TEST_CASE("logits of encoder-decoders match transformers") {
  for (const char* family : {"t5_decoder", "umt5_decoder"}) {
    const std::string folder = std::string("files/forward/") + family;
    const ModelFolder model(folder), reference = file_of(folder + "/expected.safetensors");
    std::vector<int32_t> tokens;
    for (const int64_t token : reference.tensor<int64_t>("input_ids")) tokens.push_back(static_cast<int32_t>(token));
    std::vector<float> logits;
    const auto session =
        run_forward(model, tokens, kFamiliesLength, 1 << 10, model::InputPrecision::float32, nullptr, &logits);
    const std::vector<float> expected = reference.tensor<float>("logits");
    double largest = 0, most = 0;
    for (size_t i = 0; i < expected.size(); ++i) {
      largest = std::max(largest, std::fabs(double{logits[i]} - expected[i]));
      most = std::max(most, std::fabs(double{expected[i]}));
    }
    CHECK_MESSAGE(largest < 1e-5 * most, std::string(family), ": largest difference ", largest, " of ", most);
  }
}

TEST_CASE("decoders behind encoders are described by config.json") {
  const auto said = [](const std::string& rest) {
    const auto config = json::parse(
        R"({"model_type": "t5", "vocab_size": 9, "d_model": 4, "d_ff": 4, "num_layers": 2, "num_heads": 1)" + rest +
        "}");
    auto encoder = model::read_architecture(*config);
    REQUIRE(bool(encoder));
    const Status status = model::add_decoder(*config, *encoder);
    if (status) CHECK((encoder->layers == 4 + encoder->decoder.first && model::holds_together(*encoder)));
    return status ? "" : status.error().where;
  };
  CHECK(said(R"(, "decoder_start_token_id": 8, "num_decoder_layers": 2)") == "");
  CHECK(said(R"(, "decoder_start_token_id": 0, "num_decoder_layers": null)") == "");
  for (const char* wrong : {"", R"(, "decoder_start_token_id": 9)", R"(, "decoder_start_token_id": -1)"})
    CHECK(said(wrong) == "/decoder_start_token_id");
  CHECK(said(R"(, "decoder_start_token_id": 0, "num_decoder_layers": 0)") == "/num_decoder_layers");
  CHECK(said(R"(, "decoder_start_token_id": 0, "relative_attention_max_distance": 16)") ==
        "/relative_attention_max_distance");
}

TEST_CASE("encoders are run for embeddings only, decoders for the rest") {
  const ModelFolder encoder("files/forward/bert"), decoder("files/forward/llama");
  const TileBytes tiles{1 << 20, 1 << 20};
  for (const ForwardUse use : {ForwardUse::run, ForwardUse::calibrate})
    CHECK(plan_forward(encoder.index, *json::parse(encoder.config, json::kPython), tiles, use).error().code ==
          ErrorCode::not_implemented);
  CHECK(
      plan_forward(decoder.index, *json::parse(decoder.config, json::kPython), tiles, ForwardUse::embed).error().code ==
      ErrorCode::not_implemented);
  for (const char* change : {"\"position_embedding_type\": \"relative_key\"", "\"hidden_act\": \"quick_gelu\""}) {
    std::string config = encoder.config;
    config.insert(config.rfind('}'), text_of(", {}", change));
    CHECK(plan_forward(encoder.index, *json::parse(config, json::kPython), tiles, ForwardUse::embed).error().code ==
          ErrorCode::not_implemented);
  }
}

double loss_with(const char* family, const std::string& found, const std::string& replacement) {
  ModelFolder model(std::string("files/forward/") + family);
  const size_t at = model.config.find(found);
  REQUIRE_MESSAGE(at != std::string::npos, std::string(family), " has no ", found);
  model.config.replace(at, found.size(), replacement);
  std::vector<int32_t> tokens(kFamiliesLength);
  for (size_t i = 0; i < kFamiliesLength; ++i) tokens[i] = static_cast<int32_t>(i * 7 % 40);
  return run_forward(model, tokens, kFamiliesLength, 1 << 20, model::InputPrecision::float32, nullptr, nullptr,
                     ForwardUse::run)
      ->pass()
      .loss_of(0);
}

TEST_CASE("every key in which families differ changes the result") {
  struct Change {
    const char *family, *found, *replacement;
  };
  constexpr Change kChanges[] = {
      {"llama", "llama3", "linear"},
      {"llama", "\"original_max_position_embeddings\": 16", "\"original_max_position_embeddings\": 8"},
      {"llama", "\"rope_theta\": 500", "\"rope_theta\": 400"},
      {"llama", "silu", "gelu"},
      {"llama_linear", "\"factor\": 2", "\"factor\": 3"},
      {"llama_linear", "\"gelu\"", "\"gelu_pytorch_tanh\""},
      {"mistral", "\"sliding_window\": 6", "\"sliding_window\": 7"},
      {"qwen2", "\"sliding_attention\"", "\"full_attention\""},
      {"gemma2", "\"attn_logit_softcapping\": 3", "\"attn_logit_softcapping\": 4"},
      {"gemma2", "\"final_logit_softcapping\": 4", "\"final_logit_softcapping\": 5"},
      {"gemma2", "\"query_pre_attn_scalar\": 20", "\"query_pre_attn_scalar\": 21"},
      {"gemma3_text", "\"rope_theta\": 100", "\"rope_theta\": 200"},
      {"gemma3_text", "\"rope_theta\": 5000", "\"rope_theta\": 6000"},
      {"gpt_oss", "\"swiglu_limit\": 7", "\"swiglu_limit\": 1"},
      {"deepseek_v3", "\"mscale_all_dim\": 1", "\"mscale_all_dim\": 3"},
      {"gemma3n_text", "\"altup_active_idx\": 0", "\"altup_active_idx\": 1"},
      {"gemma3n_text", "\"altup_correct_scale\": true", "\"altup_correct_scale\": false"},
      {"gemma3n_text", "0.4,", "0.0,"},
      {"gemma3n_text", "\"rope_theta\": 100", "\"rope_theta\": 200"},
      {"gemma4_moe", "\"top_k_experts\": 2", "\"top_k_experts\": 1"},
      {"gemma4_text", "\"partial_rotary_factor\": 0.25", "\"partial_rotary_factor\": 0.5"},
      {"gemma4_text", "\"sliding_window\": 5", "\"sliding_window\": 6"},
      {"gemma4_text", "\"final_logit_softcapping\": 4", "\"final_logit_softcapping\": 5"},
      {"gemma4_text", "\"vocab_size_per_layer_input\": 38",
       "\"vocab_size_per_layer_input\": 38, \"rms_norm_eps\": 0.1"},
      {"llama4_text", "\"attention_chunk_size\": 7", "\"attention_chunk_size\": 8"},
      {"llama4_text", "\"floor_scale\": 5", "\"floor_scale\": 9"},
      {"llama4_text", "\"attn_scale\": 0.5", "\"attn_scale\": 0.2"},
      {"llama4_text", "\"attn_temperature_tuning\": true", "\"attn_temperature_tuning\": false"},
      {"llama4_text", "\"use_qk_norm\": true", "\"use_qk_norm\": false"},
      {"llama4_text", "\"num_experts_per_tok\": 1", "\"num_experts_per_tok\": 2"},
      {"lfm2_moe", "\"use_expert_bias\": true", "\"use_expert_bias\": false"},
      {"lfm2_moe", "\"norm_topk_prob\": true", "\"norm_topk_prob\": false"},
      {"deepseek_v2", "group_limited_greedy", "greedy"},
      {"falcon_h1", "\"key_multiplier\": 0.5", "\"key_multiplier\": 0.75"},
      {"falcon_h1", "\"mamba_norm_before_gate\": true", "\"mamba_norm_before_gate\": false"},
      {"nemotron_h", "\"time_step_min\": 0.1", "\"time_step_min\": 0.2"},
      {"deepseek_v3", "\"topk_group\": 1", "\"topk_group\": 2"},
      {"deepseek_v3", "\"rope_interleave\": true", "\"rope_interleave\": false"},
      {"gpt_oss", "\"sliding_window\": 5", "\"sliding_window\": 6"},
      {"gemma3_text", "\"rms_norm_eps\": 1e-06", "\"rms_norm_eps\": 1e-02"},
  };
  for (const Change& change : kChanges) {
    const double before = loss_with(change.family, change.found, change.found);
    const double after = loss_with(change.family, change.found, change.replacement);
    CHECK_MESSAGE(std::fabs(before - after) > 3e-4, std::string(change.family), ": ", std::string(change.found));
  }
}

}  // namespace
}  // namespace wasmquant::testing
