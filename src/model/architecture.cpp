// The rows of families, and one check for each key of config.json.
#include "model/architecture.h"

#include <cmath>

#include "core/message.h"
#include "model/rope_config.h"

namespace wasmquant::model {
namespace {

using kernels::Activation;

enum class Windows : uint8_t {
  none,
  all,            // every layer, when sliding_window is a number
  from_layer,     // use_sliding_window: layers from max_window_layers on
  all_but_second  // all but every second, or every sliding_window_pattern-th
};

struct Family {
  const char* name;
  Windows windows;
  bool is_gemma;  // 1 + weight, scaled embedding, GeLU, tied head
  bool post_norms, head_norms, qkv_bias;
  uint32_t pattern;
  bool is_encoder = false;
};
constexpr Family kFamilies[] = {
    {"llama", Windows::none, false, false, false, false, 0},
    {"mistral", Windows::all, false, false, false, false, 0},
    {"qwen2", Windows::from_layer, false, false, false, true, 0},
    {"qwen3", Windows::from_layer, false, false, true, false, 0},
    {"gemma", Windows::none, true, false, false, false, 0},
    {"gemma2", Windows::all_but_second, true, true, false, false, 2},
    {"gemma3_text", Windows::all_but_second, true, true, true, false, 6},
    {"bert", Windows::none, false, false, false, true, 0, true},
    {"roberta", Windows::none, false, false, false, true, 0, true},
    {"xlm-roberta", Windows::none, false, false, false, true, 0, true},
};

// Far beyond any model; products of two stay below 2^53.
constexpr int64_t kMaxSize = int64_t{1} << 24;
constexpr uint32_t kMaxLayers = 1 << 14;

Status read_size(const json::Value& config, const char* key, uint32_t fallback, uint32_t& out) {
  const json::Value& value = config[key];
  if (value.is_null() && fallback != 0) {
    out = fallback;
    return {};
  }
  if (!value.is_integer() || value.as_integer() < 1 || value.as_integer() > kMaxSize)
    return error_at(ErrorCode::config_invalid, text_of("/{}", key),
                    "must be a whole number from 1 to {} in config.json for a forward pass", kMaxSize);
  out = static_cast<uint32_t>(value.as_integer());
  return {};
}

float number_or(const json::Value& value, float fallback) {
  return value.is_finite() ? static_cast<float>(value.as_number()) : fallback;
}

Status read_activation(const json::Value& config, const Family& family, Activation& out) {
  const json::Value& own =
      config[family.is_gemma && config["hidden_activation"].is_string() ? "hidden_activation" : "hidden_act"];
  const std::string& name = own.as_string();
  if (name.empty()) {
    out = family.is_gemma ? Activation::gelu_tanh : family.is_encoder ? Activation::gelu : Activation::silu;
  } else if (name == "silu" || name == "swish") {
    out = Activation::silu;
  } else if (name == "gelu_pytorch_tanh" || name == "gelu_new" || name == "gelu_fast" ||
             (name == "gelu" && family.is_gemma)) {  // early Gemma configs say gelu but mean tanh
    out = Activation::gelu_tanh;
  } else if (name == "gelu") {
    out = Activation::gelu;
  } else {
    return error_at(ErrorCode::not_implemented, "/hidden_act",
                    "the forward pass does not support activation {q}; it supports silu, gelu and gelu_pytorch_tanh",
                    name);
  }
  return {};
}

Status read_windows(const json::Value& config, const Family& family, Architecture& out) {
  out.is_sliding = List<bool>(out.layers);
  const json::Value& window = config["sliding_window"];
  if (family.windows == Windows::none || !window.is_number()) return {};
  if (family.windows == Windows::from_layer && !config["use_sliding_window"].as_bool()) return {};
  TRY_VOID(read_size(config, "sliding_window", 0, out.window));
  const json::Array& types = config["layer_types"].items();
  if (!types.empty() && types.size() != out.layers)
    return error_at(ErrorCode::config_invalid, "/layer_types", "has {} items, num_hidden_layers is {}", types.size(),
                    out.layers);
  const int64_t pattern = config["sliding_window_pattern"].as_integer();
  const uint32_t period = pattern > 0 && pattern <= kMaxSize ? static_cast<uint32_t>(pattern) : family.pattern;
  for (uint32_t layer = 0; layer < out.layers; ++layer) {
    bool& sliding = out.is_sliding[layer];
    if (family.windows == Windows::all) {
      sliding = true;
    } else if (!types.empty()) {
      sliding = types[layer].as_string() == "sliding_attention";
    } else if (family.windows == Windows::from_layer) {
      sliding = layer >= config["max_window_layers"].as_integer();
    } else {
      sliding = (layer + 1) % period != 0;
    }
  }
  return {};
}

Error unknown_family(const std::string& name) {
  return error_at(
      ErrorCode::not_implemented, "/model_type",
      "the forward pass does not support the family {q}; it supports {}. Any model can be quantized without one: "
      "weight-only configs need no calibration, and activations may come from the caller",
      name, family_names(false));
}

// RoBERTa's table of positions begins with those up to the padding token's, which no token has.
Status read_encoder(const json::Value& config, Architecture& out) {
  out.is_encoder = true;
  TRY_VOID(read_size(config, "type_vocab_size", 2, out.token_types));
  if (const json::Value& kind = config["position_embedding_type"]; kind.is_string() && kind.as_string() != "absolute")
    return error_at(ErrorCode::not_implemented, "/position_embedding_type",
                    "the forward pass does not support {q}; it supports absolute", kind.as_string());
  if (out.family != "bert") {
    const json::Value& padding = config["pad_token_id"];
    out.first_position = padding.is_integer() && padding.as_integer() >= 0 && padding.as_integer() < kMaxSize
                             ? static_cast<uint32_t>(padding.as_integer()) + 1
                             : 2;
    if (out.first_position >= out.max_positions)
      return error_at(ErrorCode::config_invalid, "/max_position_embeddings", "{} leaves no position for a token",
                      out.max_positions);
    out.max_positions -= out.first_position;
  }
  out.norm_epsilon = 1e-12;
  if (const json::Value& epsilon = config["layer_norm_eps"]; epsilon.is_finite())
    out.norm_epsilon = epsilon.as_number();
  out.output_bias = out.qkv_bias = out.mlp_bias = true;
  out.attention_scale = 1.0f / std::sqrt(static_cast<float>(out.head_dim));
  return {};
}

}  // namespace

std::string family_names(bool encoders) {
  std::string names;
  for (const Family& family : kFamilies) {
    if (family.is_encoder != encoders) continue;
    if (!names.empty()) names += ", ";
    names += family.name;
  }
  return names;
}

Result<Architecture> read_architecture(const json::Value& config) {
  if (const json::Value& text = config["text_config"]; text.is_object()) return read_architecture(text);
  Architecture out;
  out.family = config["model_type"].as_string();
  const Family* family = nullptr;
  for (const Family& known : kFamilies)
    if (out.family == known.name) family = &known;
  if (family == nullptr) return unknown_family(out.family);

  // The order matters: fallbacks use values read before; 0 means none.
  const auto none = [](const Architecture&) -> uint32_t { return 0; };
  const struct {
    const char* key;
    uint32_t Architecture::*size;
    uint32_t (*fallback)(const Architecture&);
  } sizes[] = {
      {"vocab_size", &Architecture::vocabulary, none},
      {"hidden_size", &Architecture::hidden, none},
      {"intermediate_size", &Architecture::intermediate, none},
      {"num_hidden_layers", &Architecture::layers, none},
      {"num_attention_heads", &Architecture::heads, none},
      {"num_key_value_heads", &Architecture::kv_heads, [](const Architecture& a) { return a.heads; }},
      {"head_dim", &Architecture::head_dim, [](const Architecture& a) { return a.hidden / a.heads; }},
      {"max_position_embeddings", &Architecture::max_positions, [](const Architecture&) -> uint32_t { return 2048; }},
  };
  for (const auto& [key, size, fallback] : sizes) TRY_VOID(read_size(config, key, fallback(out), out.*size));
  if (out.layers > kMaxLayers)
    return error_at(ErrorCode::config_invalid, "/num_hidden_layers", "{} layers; at most {} are possible", out.layers,
                    kMaxLayers);
  if (out.heads % out.kv_heads != 0)
    return error_at(ErrorCode::config_invalid, "/num_key_value_heads", "{} does not divide the {} attention heads",
                    out.kv_heads, out.heads);
  if (out.head_dim % 2 != 0 || uint64_t{out.heads} * out.head_dim > kMaxSize)
    return error_at(ErrorCode::config_invalid, "/head_dim",
                    "{} with {} heads; an even number and at most {} in all are possible", out.head_dim, out.heads,
                    kMaxSize);
  if (config["use_bidirectional_attention"].as_bool())
    return error_at(ErrorCode::not_implemented, "/use_bidirectional_attention",
                    "the forward pass supports only causal attention");
  TRY_VOID(read_activation(config, *family, out.activation));
  TRY_VOID(read_windows(config, *family, out));
  if (family->is_encoder) {
    TRY_VOID(read_encoder(config, out));
    return out;
  }
  TRY_VOID(read_rope(config, out.rope, out.sliding_rope));

  if (const json::Value& epsilon = config["rms_norm_eps"]; epsilon.is_finite()) out.norm_epsilon = epsilon.as_number();
  out.norm_plus_one = family->is_gemma;
  out.post_norms = family->post_norms;
  out.head_norms = family->head_norms;
  out.output_bias = config["attention_bias"].as_bool();
  out.qkv_bias = out.output_bias || family->qkv_bias;
  out.mlp_bias = config["mlp_bias"].as_bool();
  for (const auto& [layer, kind] : config["input_rotation"].members()) {
    if (layer != "mlp.down_proj" || kind.as_string() != "hadamard")
      return error_at(ErrorCode::not_implemented, text_of("/input_rotation/{}", layer),
                      "the forward pass rotates only the inputs of mlp.down_proj, by \"hadamard\"");
    out.rotated_down_input = true;
  }
  const json::Value& tied = config["tie_word_embeddings"];
  out.tied_head = tied.is_null() ? family->is_gemma : tied.as_bool();
  if (family->is_gemma) out.embedding_scale = std::sqrt(static_cast<float>(out.hidden));
  const float scalar = family->post_norms ? number_or(config["query_pre_attn_scalar"], 256.0f) : 0.0f;
  out.attention_scale = 1.0f / std::sqrt(scalar > 0 ? scalar : static_cast<float>(out.head_dim));
  if (family->post_norms) {
    const bool capped = out.family == "gemma2";
    out.attention_cap =
        number_or(config["attn_logit_softcapping"], capped && !config.find("attn_logit_softcapping") ? 50.0f : 0.0f);
    out.logit_cap =
        number_or(config["final_logit_softcapping"], capped && !config.find("final_logit_softcapping") ? 30.0f : 0.0f);
  }
  return out;
}

}  // namespace wasmquant::model
