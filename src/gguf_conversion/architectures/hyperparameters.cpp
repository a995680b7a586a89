// Rows of keys for each architecture, and a writer for those that need more than a copy.
#include "gguf_conversion/architectures/hyperparameters.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include "core/message.h"
#include "families/config_reader.h"
#include "numeric/exponential.h"

namespace wasmquant::conversion {
namespace {

constexpr uint32_t kMaxHeadWidth = 65'536;

enum class KeyKind : uint8_t { count, real };

struct HyperparameterRow {
  const char* key;    // after "<architecture>."
  const char* names;  // in config.json; empty: never there
  KeyKind kind = KeyKind::count;
  uint16_t only = 0;    // families with this trait (families/table/family_traits.h); 0: all
  double fallback = 0;  // 0: none. What transformers assumes when config.json is silent
  bool required = false;
};

constexpr HyperparameterRow kHyperparameterRows[] = {
    {"context_length", "max_position_embeddings|n_positions|n_ctx", KeyKind::count, families::kLongDefaults, 131072},
    {"context_length", "max_position_embeddings|n_positions|n_ctx", KeyKind::count, 0, 0, true},
    {"embedding_length", "hidden_size|n_embd|dim", KeyKind::count, 0, 0, true},
    {"block_count", "num_hidden_layers|n_layer|n_layers", KeyKind::count, 0, 0, true},
    {"feed_forward_length", "intermediate_size|n_inner|hidden_dim", KeyKind::count},
    {"attention.head_count", "num_attention_heads|n_head", KeyKind::count, families::kLongDefaults, 8},
    {"attention.head_count", "num_attention_heads|n_head|n_heads", KeyKind::count, 0, 0, true},
    {"attention.head_count_kv", "num_key_value_heads", KeyKind::count, families::kLongDefaults, 4},
    {"attention.head_count_kv", "num_key_value_heads"},
    {"attention.key_length", "head_dim", KeyKind::count, families::kWideHeads, 256},
    {"attention.value_length", "head_dim", KeyKind::count, families::kWideHeads, 256},
    {"attention.key_length", "head_dim"},
    {"attention.value_length", "head_dim"},
    {"attention.layer_norm_rms_epsilon", "rms_norm_eps|norm_eps", KeyKind::real, 0, 1e-6},
    {"attention.layer_norm_epsilon", "layer_norm_eps|layer_norm_epsilon", KeyKind::real, families::kBidirectional,
     1e-12},
    {"attention.layer_norm_epsilon", "layer_norm_eps|layer_norm_epsilon|norm_epsilon", KeyKind::real, 0, 1e-5},
    {"expert_count", "num_local_experts|num_experts|n_routed_experts"},
    {"expert_used_count", "num_experts_per_tok|num_experts_per_token|top_k_experts"},
    {"expert_group_count", "n_group"},
    {"expert_group_used_count", "topk_group"},
    {"attention.sliding_window", "sliding_window", KeyKind::count, families::kSlides, 4096},
    {"attn_logit_softcapping", "attn_logit_softcapping", KeyKind::real, families::kSlides},
    {"final_logit_softcapping", "final_logit_softcapping", KeyKind::real, families::kSlides},
};

// RMS norms and layer norms have different epsilon keys.
bool is_other_norm(std::string_view key, const Family& family) {
  return key == (family.converts_with(families::kLayerNorms) ? "attention.layer_norm_rms_epsilon"
                                                             : "attention.layer_norm_epsilon");
}

// llama.cpp's enum llama_expert_gating_func_type
std::optional<uint32_t> expert_score_of(std::string_view function) {
  if (function == "softmax") return 1;
  return function == "sigmoid" ? std::optional<uint32_t>(2) : std::nullopt;
}

Error missing(std::string_view names) {
  return error_at(ErrorCode::argument_invalid, text_of("config.json: /{}", families::first_word(names)),
                  "the model needs this key, a whole number from 1 to 2^32 - 1");
}

class HyperparameterWriter {
 public:
  HyperparameterWriter(const json::Value& config, const Family& family, gguf::Metadata& metadata)
      : config_(config), family_(family), metadata_(metadata) {}

  Result<Hyperparameters> run() {
    TRY_VOID(rows());
    TRY_VOID(rope());
    Hyperparameters found;
    found.layers = std::max(value_of("block_count"), value_of("decoder_block_count"));
    found.heads = value_of("attention.head_count");
    found.experts = value_of("expert_count");
    found.key_value_heads = value_of("attention.head_count_kv");
    if (found.key_value_heads == 0) found.key_value_heads = found.heads;
    const auto scores = expert_score_of(config_.text("score_function|scoring_func|score_func|expert_selection_fn"));
    if (scores && metadata_.find(key("expert_gating_func")) == nullptr)
      metadata_.set_u32(key("expert_gating_func"), *scores);
    const uint32_t width = value_of("embedding_length");
    found.head_width = value_of("attention.key_length");
    if (found.head_width == 0 && found.heads != 0) found.head_width = width / found.heads;
    if (found.head_width > kMaxHeadWidth)
      return error_at(ErrorCode::argument_invalid, "config.json: /head_dim", "heads of {} elements; the limit is {}",
                      found.head_width, kMaxHeadWidth);
    if (found.key_value_heads != 0 && found.heads % found.key_value_heads != 0)
      return error_at(ErrorCode::argument_invalid, "config.json: /num_key_value_heads",
                      "{} heads do not share {} key/value heads evenly", found.heads, found.key_value_heads);
    if (has(families::kInterleavesHeads)) metadata_.set_u32(key("rope.dimension_count"), found.head_width);
    if (has(families::kBidirectional)) metadata_.set_bool(key("attention.causal"), false);
    if (metadata_.find(key("feed_forward_length")) == nullptr) {
      if (!has(families::kFourfold)) return missing("intermediate_size");
      metadata_.set_u32(key("feed_forward_length"), 4 * width);
    }
    return found;
  }

 private:
  bool has(uint16_t trait) const noexcept { return family_.converts_with(trait); }
  // The key with the architecture's prefix; valid until the next call.
  const std::string& key(const char* name) {
    key_.assign(family_.architecture);
    key_ += '.';
    return key_ += name;
  }
  // Of an array its largest element.
  uint32_t value_of(const char* name) { return static_cast<uint32_t>(metadata_.find_count(key(name)).value_or(0)); }
  void set_real(const char* name, double value) { metadata_.set_f32(key(name), static_cast<float>(value)); }

  Status rows() {
    for (const HyperparameterRow& row : kHyperparameterRows) {
      if (row.only != 0 && !has(row.only)) continue;
      if (is_other_norm(row.key, family_) || metadata_.find(key(row.key)) != nullptr) continue;
      if (row.kind == KeyKind::real) {
        const double value = config_.number(row.names).value_or(row.fallback);
        if (value != 0) set_real(row.key, value);
        continue;
      }
      const uint32_t value = config_.count(row.names).value_or(static_cast<uint32_t>(row.fallback));
      if (value != 0) metadata_.set_u32(key(row.key), value);
      if (value == 0 && row.required) return missing(row.names);
    }
    return {};
  }

  // Rotary embeddings: the parameters are in their own object or (the base) next to it; Gemma 3 has two sets.
  Status rope() {
    if (has(families::kLearnedPositions)) return {};
    const json::Value nothing;
    const json::Value* parameters = config_.find("rope_parameters|rope_scaling");
    if (parameters == nullptr) parameters = &nothing;
    const json::Value& local = (*parameters)["sliding_attention"];
    if (const json::Value* global = parameters->find("full_attention")) parameters = global;
    const families::ConfigReader scaling(*parameters);
    const auto copy = [&](const families::ConfigReader& from, const char* name, const char* names) {
      const auto value = from.number(names);
      if (value) set_real(name, *value);
      return value.has_value();
    };
    if (!copy(scaling, "rope.freq_base", "rope_theta") && !copy(config_, "rope.freq_base", "rope_theta") &&
        has(families::kLongDefaults))
      set_real("rope.freq_base", 1e6);
    if (!copy(families::ConfigReader(local), "rope.freq_base_swa", "rope_theta"))
      copy(config_, "rope.freq_base_swa", "rope_local_base_freq");

    const std::string_view type = scaling.text("rope_type|type");
    // "default" means none, "mrope" only sections; "llama3" becomes a tensor (rope_factors).
    if (type.empty() || type == "default" || type == "mrope" ||
        ((type == "llama3" || type == "proportional") && has(families::kFactors)))
      return {};
    if (type == "dynamic" && scaling.number("alpha")) {
      write_alpha(scaling);
      return {};
    }
    const bool is_yarn = type == "yarn";
    if ((!is_yarn && type != "linear") || !copy(scaling, "rope.scaling.factor", "factor"))
      return error_at(ErrorCode::format_unsupported, "config.json: /rope_scaling",
                      "rope scaling {q} is not written to GGUF for models of type {}; these are: linear, yarn{}", type,
                      family_.model_type, has(families::kFactors) ? ", llama3" : "");
    metadata_.set_text(key("rope.scaling.type"), type);
    if (!is_yarn) return {};
    const auto original = scaling.count("original_max_position_embeddings");
    if (!original) return missing("original_max_position_embeddings");
    metadata_.set_u32(key("rope.scaling.original_context_length"), *original);
    constexpr const char* kYarn[][2] = {{"rope.scaling.yarn_ext_factor", "extrapolation_factor"},
                                        {"rope.scaling.yarn_attn_factor", "attention_factor|attn_factor"},
                                        {"rope.scaling.yarn_beta_fast", "beta_fast"},
                                        {"rope.scaling.yarn_beta_slow", "beta_slow"}};
    for (const auto& [name, names] : kYarn) copy(scaling, name, names);
    if ((*parameters)["truncate"].is_bool())
      metadata_.set_bool(key("rope.scaling.yarn_truncate"), (*parameters)["truncate"].as_bool());
    return {};
  }

  // Hunyuan's scaling is another base, base alpha^(d / (d - 2)) for heads of d. It holds for 256 Ki positions, also if
  // config.json says fewer. Source: llama.cpp, conversion/hunyuan.py.
  void write_alpha(const families::ConfigReader& scaling) {
    constexpr uint32_t kPositions = 256 * 1024;
    const double base = scaling.number("rope_theta").value_or(config_.number("rope_theta").value_or(10000));
    double width = value_of("attention.key_length");
    if (width == 0) width = value_of("embedding_length") / std::max(value_of("attention.head_count"), 1u);
    const double exponent = width > 2 ? width / (width - 2) : 1;
    set_real("rope.freq_base", base * exp2_of(exponent * log2_of(std::max(*scaling.number("alpha"), 1.0))));
    metadata_.set_text(key("rope.scaling.type"), "none");
    set_real("rope.scaling.factor", 1);
    metadata_.set_u32(key("rope.scaling.original_context_length"), kPositions);
    metadata_.set_u32(key("context_length"), kPositions);
  }

  const families::ConfigReader config_;
  const Family& family_;
  std::string key_;
  gguf::Metadata& metadata_;
};

}  // namespace

Result<Hyperparameters> write_hyperparameters(const json::Value& config, const Family& family,
                                              gguf::Metadata& metadata) {
  return HyperparameterWriter(config, family, metadata).run();
}

}  // namespace wasmquant::conversion
