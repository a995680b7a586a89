// The rows of families, and one check for each key of config.json.
#include "model/config/architecture.h"

#include <algorithm>

#include "core/message.h"
#include "families/config_reader.h"
#include "families/layer_kinds.h"
#include "families/near_names.h"
#include "model/config/convolution_config.h"
#include "model/config/decoder_config.h"
#include "model/config/family_facts.h"
#include "model/config/layer_config.h"
#include "model/config/mixer_config.h"
#include "model/config/rope_config.h"
#include "model/config/routing_config.h"

namespace wasmquant::model {
namespace {

using kernels::Activation;

using families::forward::Windows;

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

struct NamedActivation {
  std::string_view name;
  Activation activation;
};
constexpr NamedActivation kActivations[] = {
    {"silu", Activation::silu},           {"swish", Activation::silu},
    {"gelu", Activation::gelu},           {"gelu_new", Activation::gelu_tanh},
    {"gelu_fast", Activation::gelu_tanh}, {"gelu_pytorch_tanh", Activation::gelu_tanh},
    {"relu", Activation::relu},           {"relu2", Activation::squared_relu},
};

constexpr std::string_view kLearnedActivation = "xielu";

Status read_activation(const FamilyFacts& facts, bool is_learned, Activation& out) {
  std::string name = facts.text("activation", "hidden_act");
  if (is_learned && (name.empty() || name == kLearnedActivation)) return {};
  if (name.empty()) name = "silu";
  constexpr std::string_view kGated = "gated-";  // T5, of which a gated gelu is the one with tanh
  const bool is_gated = name.starts_with(kGated);
  if (is_gated) name.erase(0, kGated.size());
  // Early Gemma configs say gelu but mean tanh.
  if (name == "gelu" && (is_gated || facts.has(families::forward::kTanhGelu))) name = "gelu_new";
  for (const NamedActivation& row : kActivations)
    if (row.name == name) {
      out = row.activation;
      return {};
    }
  return error_at(
      ErrorCode::not_implemented, "/hidden_act",
      "the forward pass does not support activation {q}; it supports silu, gelu, gelu_pytorch_tanh, relu and "
      "relu2",
      name);
}

bool holds_together(const Relative& relative) noexcept {
  return relative.buckets >= 4 && relative.buckets <= kMaxSize && relative.buckets % 4 == 0 &&
         relative.farthest > relative.buckets / 4 && relative.farthest <= kMaxSize;
}

// sliding_window_pattern: a number, or a letter for each layer of a period.
uint32_t period_of(const json::Value& pattern, uint32_t otherwise) {
  if (pattern.is_string() && !pattern.as_string().empty()) return static_cast<uint32_t>(pattern.as_string().size());
  const int64_t number = pattern.as_integer();
  return number > 0 && number <= kMaxSize ? static_cast<uint32_t>(number) : otherwise;
}

Status read_windows(const json::Value& config, const families::forward::Row& row, Architecture& out) {
  out.is_sliding = List<bool>(out.layers);
  const std::string key = key_of(config, "sliding_window|window_size|local_attention|attention_chunk_size");
  const json::Value &window = config[key.c_str()], &used = config["use_sliding_window"];
  const bool is_used = used.is_bool() ? used.as_bool() : row.windows != Windows::from_layer;
  if (row.windows == Windows::none || !window.is_number() || !is_used) return {};
  TRY_VOID(read_size(config, key.c_str(), 0, out.window));
  out.is_chunked = row.windows == Windows::chunks;
  if (out.is_encoder) out.window = out.window / 2 + 1;  // of both sides
  const json::Array& types = config[key_of(config, "layer_types|attention_layers").c_str()].items();
  if (!types.empty() && types.size() != out.layers)
    return error_at(ErrorCode::config_invalid, "/layer_types", "has {} items, num_hidden_layers is {}", types.size(),
                    out.layers);
  const bool is_first = row.windows == Windows::all_but_first;
  const uint32_t period =
      period_of(config[is_first ? "global_attn_every_n_layers" : "sliding_window_pattern"], row.period);
  for (uint32_t layer = 0; layer < out.layers; ++layer) {
    bool& sliding = out.is_sliding[layer];
    if (row.windows == Windows::all) {
      sliding = true;
    } else if (row.windows == Windows::chunks) {
      sliding = types.empty() ? out.is_rotated[layer] : types[layer].as_string() == "chunked_attention";
    } else if (!types.empty()) {
      sliding = types[layer].as_string() == "sliding_attention" || types[layer].as_string() == "local";
    } else if (row.windows == Windows::from_layer) {
      sliding = layer >= config["max_window_layers"].as_integer();
    } else {
      sliding = period != 0 && (layer + (is_first ? 0 : 1)) % period != 0;
    }
  }
  return {};
}

Status read_rotated(const json::Value& config, const families::forward::Row& row, Architecture& out) {
  out.is_rotated = List<bool>(out.layers);
  const json::Array& listed = config["no_rope_layers"].items();
  if (row.has(families::forward::kSomeUnrotated) && !listed.empty() && listed.size() != out.layers)
    return error_at(ErrorCode::config_invalid, "/no_rope_layers", "has {} items, num_hidden_layers is {}",
                    listed.size(), out.layers);
  constexpr uint32_t kInterval = 4;
  const uint32_t interval = period_of(config["no_rope_layer_interval"], kInterval);
  for (uint32_t layer = 0; layer < out.layers; ++layer) {
    bool& rotated = out.is_rotated[layer];
    rotated = !row.has(families::forward::kUnrotated);
    if (row.has(families::forward::kRotatedByName)) rotated = config["position_embedding_type"].as_string() == "rope";
    if (!row.has(families::forward::kSomeUnrotated)) continue;
    rotated &= listed.empty() ? (layer + 1) % interval != 0 : listed[layer].as_integer() != 0;
  }
  return {};
}

Status read_layers(const json::Value& config, const families::forward::Row& row, Architecture& out) {
  TRY_VOID(read_rotated(config, row, out));
  TRY_VOID(read_windows(config, row, out));
  if (row.has(families::forward::kRotatedWindows) && out.window > 0)
    for (uint32_t layer = 0; layer < out.layers; ++layer) out.is_rotated[layer] &= out.is_sliding[layer];
  return {};
}

Error unknown_family(const std::string& name) {
  List<std::string_view> types;
  for (const families::forward::Row& row : families::forward::kRows)
    if (row.predicts()) types.push_back(row.model_type);
  return error_at(
      ErrorCode::not_implemented, "/model_type",
      "models of type {q} cannot be run here, which evaluate, generate, imatrix and configs that calibrate need; {}. "
      "Every checkpoint format takes them by configs without calibration, such as int8 and int4_wo_128, or with "
      "activations from the caller",
      name, families::names_near({types.data(), types.size()}, name, "the guide to measuring a model"));
}

bool has_alibi(const json::Value& config) { return config["position_embedding_type"].as_string() == "alibi"; }

// Of BERT, one row has slopes in the place of positions.
bool is_row_of(const families::forward::Row& row, const json::Value& config) {
  using namespace families::forward;
  return config["model_type"].as_string() == row.model_type &&
         (!row.has(kEncoder) || row.has(kSlopes) == has_alibi(config) || row.model_type != "bert");
}

Status read_relative(const json::Value& config, const FamilyFacts& facts, Relative& out) {
  const char *const buckets = "relative_attention_num_buckets", *const farthest = "relative_attention_max_distance";
  TRY_VOID(read_size(config, buckets, 32, out.buckets));
  TRY_VOID(read_size(config, farthest, 128, out.farthest));
  out.has_own_tables = facts.flag("own_tables");
  if (!holds_together(out))
    return error_at(
        ErrorCode::config_invalid, text_of("/{}", buckets),
        "{} buckets up to a distance of {}; a multiple of 4 is possible, with a distance above a quarter of it",
        out.buckets, out.farthest);
  return {};
}

// RoBERTa's table of positions begins with those up to the padding token's, which no token has.
Status read_encoder(const json::Value& config, const FamilyFacts& facts, Architecture& out) {
  if (out.names.has(ModelPart::types)) TRY_VOID(read_size(config, "type_vocab_size", 2, out.token_types));
  if (out.names.has(ModelPart::relative_bias)) TRY_VOID(read_relative(config, facts, out.relative));
  if (const std::string names = facts.text("decoder", ""); !names.empty()) {
    out.decoder.names = ModelNames::of_row(names, config);
    out.decoder.scales_logits = facts.flag("scales_logits");
  }
  if (const json::Value& kind = config["position_embedding_type"];
      kind.is_string() && kind.as_string() != "absolute" && !has_alibi(config))
    return error_at(ErrorCode::not_implemented, "/position_embedding_type",
                    "the forward pass does not support {q}; it supports absolute and alibi", kind.as_string());
  if (!facts.has(families::forward::kPaddedPositions)) return {};
  const json::Value& padding = config["pad_token_id"];
  out.first_position = padding.is_integer() && padding.as_integer() >= 0 && padding.as_integer() < kMaxSize
                           ? static_cast<uint32_t>(padding.as_integer()) + 1
                           : 2;
  if (out.first_position >= out.max_positions)
    return error_at(ErrorCode::config_invalid, "/max_position_embeddings", "{} leaves no position for a token",
                    out.max_positions);
  out.max_positions -= out.first_position;
  return {};
}

}  // namespace

std::string family_names(bool encoders) {
  std::string names;
  for (const families::forward::Row& family : families::forward::kRows) {
    const bool is_one = encoders ? family.has(families::forward::kEncoder) : family.predicts();
    if (!is_one || names.ends_with(family.model_type)) continue;
    if (!names.empty()) names += ", ";
    names += family.model_type;
  }
  return names;
}

namespace {

// Families that let all queries read one key say so in other words, others with fused heads have as many keys; 0: as usual.
uint32_t kv_heads_of(const json::Value& config, const families::forward::Row& row, const Architecture& a) {
  if (!row.has(families::forward::kMultiQuery)) return a.names.has(ModelPart::heads_qkv) ? a.heads : 0;
  if (config["new_decoder_architecture"].as_bool()) return 0;
  const json::Value& multi_query = config["multi_query"];
  return multi_query.is_bool() && !multi_query.as_bool() ? a.heads : 1;
}

Status read_latent(const json::Value& config, Architecture& out) {
  Latent& latent = out.latent;
  uint32_t plain = 0;
  if (config["q_lora_rank"].is_number()) TRY_VOID(read_size(config, "q_lora_rank", 0, latent.query_rank));
  TRY_VOID(read_size(config, "kv_lora_rank", 0, latent.rank));
  TRY_VOID(read_size(config, "qk_nope_head_dim", 0, plain));
  TRY_VOID(read_size(config, "qk_rope_head_dim", 0, latent.rope_dim));
  TRY_VOID(read_size(config, "v_head_dim", 0, latent.value_dim));
  if (latent.rope_dim % 2 != 0 || uint64_t{out.heads} * latent.value_dim > kMaxSize)
    return error_at(ErrorCode::config_invalid, "/qk_rope_head_dim",
                    "{} with values of {} in {} heads; an even number, and at most {} in all, are possible",
                    latent.rope_dim, latent.value_dim, out.heads, kMaxSize);
  out.head_dim = plain + latent.rope_dim;
  out.kv_heads = out.heads;
  return {};
}

Status read_sizes(const json::Value& config, const families::forward::Row& row, Architecture& out) {
  // A list of what each layer is tells how many there are.
  if (row.has(families::forward::kSplitLayers))
    out.layers = static_cast<uint32_t>(families::layer_kinds(families::ConfigReader(config), 0).size());
  // The order matters: fallbacks use values read before; 0 means none.
  const auto none = [](const Architecture&) -> uint32_t { return 0; };
  const struct {
    const char* key;
    uint32_t Architecture::*size;
    uint32_t (*fallback)(const Architecture&);
  } sizes[] = {
      {"vocab_size", &Architecture::vocabulary, none},
      {"hidden_size|n_embd|d_model|dim", &Architecture::hidden, none},
      {"num_hidden_layers|n_layer|num_layers|n_layers", &Architecture::layers,
       [](const Architecture& a) { return a.layers; }},
      {"num_attention_heads|n_head|num_heads|n_heads", &Architecture::heads,
       [](const Architecture& a) -> uint32_t { return a.names.has(ModelPart::mixer_in) ? 1 : 0; }},
      {"num_key_value_heads|num_kv_heads", &Architecture::kv_heads, [](const Architecture& a) { return a.heads; }},
      {"head_dim|d_kv", &Architecture::head_dim, [](const Architecture& a) { return a.hidden / a.heads; }},
      {"max_position_embeddings|n_positions|n_ctx|max_seq_len|seq_length", &Architecture::max_positions,
       [](const Architecture&) -> uint32_t { return 2048; }},
  };
  for (const auto& [names, size, fallback] : sizes)
    TRY_VOID(read_size(config, key_of(config, names).c_str(), fallback(out), out.*size));
  if (out.names.has(ModelPart::kv_b)) TRY_VOID(read_latent(config, out));
  if (const uint32_t kv_heads = kv_heads_of(config, row, out); kv_heads != 0) out.kv_heads = kv_heads;
  const std::string width =
      key_of(config, "block_ff_dim|intermediate_size|n_inner|ffn_dim|ffn_hidden_size|hidden_dim|d_ff");
  if (const json::Array& widths = config[width.c_str()].items(); !widths.empty())
    TRY_VOID(read_widths(widths, out));
  else
    TRY_VOID(read_size(config, width.c_str(),
                       row.has(families::forward::kFourfold) ? 4 * out.hidden : !has_feed_forward(out.names),
                       out.intermediate));
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

}  // namespace

Result<Architecture> read_architecture(const json::Value& config) {
  if (const json::Value& text = config["text_config"]; text.is_object()) return read_architecture(text);
  Architecture out;
  out.family = config["model_type"].as_string();
  const families::forward::Row* row = nullptr;
  for (const families::forward::Row& known : families::forward::kRows)
    if (is_row_of(known, config)) row = &known;
  if (row == nullptr) return unknown_family(out.family);
  const FamilyFacts facts(*row, config);
  out.names = ModelNames::of_row(row->names, config);
  out.is_encoder = row->has(families::forward::kEncoder) || facts.flag("bidirectional");
  TRY_VOID(read_sizes(config, *row, out));
  const json::Value& sees_behind = config["use_bidirectional_attention"];
  if (!out.is_encoder && (sees_behind.as_bool() || sees_behind.as_string() == "all"))
    return error_at(ErrorCode::not_implemented, "/use_bidirectional_attention",
                    "the forward pass supports only causal attention");
  TRY_VOID(read_activation(facts, out.names.has(ModelPart::activation), out.activation));
  TRY_VOID(facts.read(out));
  TRY_VOID(read_layers(config, *row, out));
  TRY_VOID(read_layer_sizes(config, facts, out));
  TRY_VOID(read_mixers(config, facts, out));
  TRY_VOID(adjust_width(config, out));
  TRY_VOID(read_routing(config, facts, out));
  if (!row->has(families::forward::kUnrotated)) TRY_VOID(read_rope(config, facts, out));
  if (out.is_encoder) {
    TRY_VOID(read_encoder(config, facts, out));
    return out;
  }
  if (row->has(families::forward::kTwoAhead)) out.first_position = 2;
  const json::Value& tied = config[key_of(config, "tie_embedding|tie_word_embeddings").c_str()];
  out.tied_head = tied.is_null() ? row->has(families::forward::kTied) : tied.as_bool();
  for (const auto& [layer, kind] : config["input_rotation"].members()) {
    if (layer != out.names.of(ModelPart::down) || kind.as_string() != "hadamard")
      return error_at(ErrorCode::not_implemented, text_of("/input_rotation/{}", layer),
                      "the forward pass rotates only the inputs of {}, by \"hadamard\"", out.names.of(ModelPart::down));
    out.rotated_down_input = true;
  }
  return out;
}

namespace {

bool holds_together(const Rope& rope, uint32_t head_dim) noexcept {
  const uint32_t dimensions = rope.dimensions(head_dim);
  const bool has_factors = rope.scaling == Rope::Scaling::longrope;
  return dimensions > 0 && rope.share <= 1 && dimensions % 2 == 0 &&
         (!has_factors || (rope.short_factors.size() == dimensions / 2 && rope.long_factors.size() == dimensions / 2));
}

bool holds_together(const Latent& latent, const Architecture& a) noexcept {
  if (latent.rank == 0) return !a.names.has(ModelPart::kv_b);
  const auto is_size = [](uint32_t size) { return size >= 1 && size <= kMaxSize; };
  return is_size(latent.rank) && latent.query_rank <= kMaxSize && is_size(latent.value_dim) &&
         is_size(latent.rope_dim) && latent.rope_dim < a.head_dim && a.kv_heads == a.heads &&
         uint64_t{a.heads} * latent.value_dim <= kMaxSize && a.names.has(ModelPart::kv_b) &&
         a.names.has(ModelPart::k) && a.names.has(ModelPart::q) &&
         a.names.has(ModelPart::q_b) == (latent.query_rank > 0);
}

bool holds_together(const Routing& routing, const Architecture& a) noexcept {
  if (routing.experts == 0) return a.has_experts.empty();
  return a.has_experts.size() == a.layers && routing.experts <= kMaxExperts && routing.chosen >= 1 &&
         routing.chosen <= routing.experts && routing.width >= 1 && routing.width <= kMaxSize &&
         routing.shared_width <= kMaxSize && routing.groups >= 1 && routing.experts % routing.groups == 0 &&
         routing.chosen_groups >= 1 && routing.chosen_groups <= routing.groups &&
         routing.chosen <= uint64_t{routing.chosen_groups} * (routing.experts / routing.groups) &&
         (routing.gate_limit == 0 || (routing.gate_limit > 0 && a.names.has(ModelPart::expert_biases_up)));
}

}  // namespace

bool holds_together(const Architecture& a) noexcept {
  if (!decoder_holds_together(a)) return false;
  for (const uint32_t size : {a.vocabulary, a.hidden, a.intermediate, a.layers, a.heads, a.kv_heads, a.head_dim,
                              a.max_positions, std::max(a.token_types, uint32_t{!a.names.has(ModelPart::types)})})
    if (size < 1 || size > kMaxSize) return false;
  bool slides = false;
  for (const bool sliding : a.is_sliding) slides |= sliding;
  if (a.is_sliding.size() != a.layers || !sizes_hold_together(a)) return false;
  if (a.names.has(ModelPart::relative_bias) ? !holds_together(a.relative) : a.relative.buckets > 0) return false;
  if (!mixers_hold_together(a) || !holds_together(a.latent, a) || !holds_together(a.rope, a.rope_dim()) ||
      !holds_together(a.sliding_rope, a.rope_dim()))
    return false;
  return a.layers <= kMaxLayers && a.is_sliding.size() == a.layers && a.is_rotated.size() == a.layers &&
         holds_together(a.routing, a) && a.heads % a.kv_heads == 0 && a.head_dim % 2 == 0 &&
         uint64_t{a.heads} * a.head_dim <= kMaxSize && a.first_position < kMaxSize && a.window <= kMaxSize &&
         a.query_growth.span > 0 && (!slides || a.window > 0) &&
         (a.names.has(ModelPart::q) || a.names.has(ModelPart::qkv) || a.names.has(ModelPart::heads_qkv) ||
          all_recur(a));
}

}  // namespace wasmquant::model
