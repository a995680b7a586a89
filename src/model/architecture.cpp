// The rows of families, and one check for each key of config.json.
#include "model/architecture.h"

#include <algorithm>
#include <cmath>

#include "core/message.h"
#include "families/table/family_traits.h"
#include "model/rope_config.h"

namespace wasmquant::model {
namespace {

using kernels::Activation;

using Family = families::FamilyRow;
using families::Windows;

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
      config[family.runs_with(families::kGemma) && config["hidden_activation"].is_string() ? "hidden_activation"
                                                                                           : "hidden_act"];
  const std::string& name = own.as_string();
  if (name.empty()) {
    out = family.runs_with(families::kGemma)     ? Activation::gelu_tanh
          : family.runs_with(families::kEncoder) ? Activation::gelu
                                                 : Activation::silu;
  } else if (name == "silu" || name == "swish") {
    out = Activation::silu;
  } else if (name == "gelu_pytorch_tanh" || name == "gelu_new" || name == "gelu_fast" ||
             (name == "gelu" && family.runs_with(families::kGemma))) {  // early Gemma configs say gelu but mean tanh
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
  const uint32_t period = pattern > 0 && pattern <= kMaxSize ? static_cast<uint32_t>(pattern) : family.period;
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
Status read_encoder(const json::Value& config, const Family& family, Architecture& out) {
  out.is_encoder = true;
  TRY_VOID(read_size(config, "type_vocab_size", 2, out.token_types));
  if (const json::Value& kind = config["position_embedding_type"]; kind.is_string() && kind.as_string() != "absolute")
    return error_at(ErrorCode::not_implemented, "/position_embedding_type",
                    "the forward pass does not support {q}; it supports absolute", kind.as_string());
  if (family.runs_with(families::kPaddedPositions)) {
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
  for (const Family& family : families::kFamilyRows) {
    if (!family.runs_with(families::kRuns) || family.runs_with(families::kEncoder) != encoders) continue;
    if (!names.empty()) names += ", ";
    names += family.model_type;
  }
  return names;
}

namespace {

Status read_sizes(const json::Value& config, Architecture& out) {
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
  return {};
}

// Scales and caps of attention and logits, and biases.
void read_attention(const json::Value& config, const Family& family, Architecture& out) {
  out.norm_plus_one = family.runs_with(families::kGemma);
  out.post_norms = family.runs_with(families::kPostNorms);
  out.head_norms = family.runs_with(families::kHeadNorms);
  out.output_bias = config["attention_bias"].as_bool();
  out.qkv_bias = out.output_bias || family.runs_with(families::kQkvBias);
  out.mlp_bias = config["mlp_bias"].as_bool();
  const json::Value& tied = config["tie_word_embeddings"];
  out.tied_head = tied.is_null() ? out.norm_plus_one : tied.as_bool();
  if (out.norm_plus_one) out.embedding_scale = std::sqrt(static_cast<float>(out.hidden));
  const float scalar = out.post_norms ? number_or(config["query_pre_attn_scalar"], 256.0f) : 0.0f;
  out.attention_scale = 1.0f / std::sqrt(scalar > 0 ? scalar : static_cast<float>(out.head_dim));
  if (!out.post_norms) return;
  const auto cap = [&](const char* key, float of_family) {
    return number_or(config[key], family.runs_with(families::kCapped) && !config.find(key) ? of_family : 0.0f);
  };
  out.attention_cap = cap("attn_logit_softcapping", 50.0f);
  out.logit_cap = cap("final_logit_softcapping", 30.0f);
}

}  // namespace

Result<Architecture> read_architecture(const json::Value& config) {
  if (const json::Value& text = config["text_config"]; text.is_object()) return read_architecture(text);
  Architecture out;
  out.family = config["model_type"].as_string();
  const Family* family = nullptr;
  for (const Family& known : families::kFamilyRows)
    if (known.runs_with(families::kRuns) && out.family == known.model_type) family = &known;
  if (family == nullptr) return unknown_family(out.family);
  TRY_VOID(read_sizes(config, out));
  if (config["use_bidirectional_attention"].as_bool())
    return error_at(ErrorCode::not_implemented, "/use_bidirectional_attention",
                    "the forward pass supports only causal attention");
  TRY_VOID(read_activation(config, *family, out.activation));
  TRY_VOID(read_windows(config, *family, out));
  if (family->runs_with(families::kEncoder)) {
    TRY_VOID(read_encoder(config, *family, out));
    return out;
  }
  TRY_VOID(read_rope(config, out.rope, out.sliding_rope));

  if (const json::Value& epsilon = config["rms_norm_eps"]; epsilon.is_finite()) out.norm_epsilon = epsilon.as_number();
  read_attention(config, *family, out);
  for (const auto& [layer, kind] : config["input_rotation"].members()) {
    if (layer != "mlp.down_proj" || kind.as_string() != "hadamard")
      return error_at(ErrorCode::not_implemented, text_of("/input_rotation/{}", layer),
                      "the forward pass rotates only the inputs of mlp.down_proj, by \"hadamard\"");
    out.rotated_down_input = true;
  }
  return out;
}

bool holds_together(const Architecture& a) noexcept {
  for (const uint32_t size : {a.vocabulary, a.hidden, a.intermediate, a.layers, a.heads, a.kv_heads, a.head_dim,
                              a.max_positions, std::max(a.token_types, uint32_t{!a.is_encoder})})
    if (size < 1 || size > kMaxSize) return false;
  bool slides = false;
  for (const bool sliding : a.is_sliding) slides |= sliding;
  return a.layers <= kMaxLayers && a.is_sliding.size() == a.layers && a.heads % a.kv_heads == 0 &&
         a.head_dim % 2 == 0 && uint64_t{a.heads} * a.head_dim <= kMaxSize && a.first_position < kMaxSize &&
         a.window <= kMaxSize && (!slides || a.window > 0);
}

}  // namespace wasmquant::model
