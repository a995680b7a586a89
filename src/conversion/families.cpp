#include "conversion/config_reader.h"
#include "conversion/family.h"
#include "core/message.h"

namespace wasmquant::conversion {
namespace {

constexpr TensorRow kDecoderRows[] = {
    {"embed_tokens", "token_embd"},
    {"norm", "output_norm", TensorKind::norm},
    {"lm_head", "output"},
    {"layers.#.input_layernorm", "blk.#.attn_norm", TensorKind::norm},
    {"layers.#.self_attn.q_proj", "blk.#.attn_q", TensorKind::query},
    {"layers.#.self_attn.k_proj", "blk.#.attn_k", TensorKind::key},
    {"layers.#.self_attn.v_proj", "blk.#.attn_v"},
    {"layers.#.self_attn.o_proj", "blk.#.attn_output"},
    {"layers.#.self_attn.q_norm", "blk.#.attn_q_norm", TensorKind::norm},
    {"layers.#.self_attn.k_norm", "blk.#.attn_k_norm", TensorKind::norm},
    {"layers.#.self_attn.rotary_emb", nullptr, TensorKind::left_out},
    {"layers.#.post_attention_layernorm", "blk.#.ffn_norm", TensorKind::norm},
    {"layers.#.mlp.gate_proj", "blk.#.ffn_gate"},
    {"layers.#.mlp.up_proj", "blk.#.ffn_up"},
    {"layers.#.mlp.down_proj", "blk.#.ffn_down"},
    {"rotary_emb", nullptr, TensorKind::left_out},
};

// Gemma's embedding is its head, whatever else the file may hold.
constexpr TensorRow kGemmaRows[] = {
    {"lm_head", nullptr, TensorKind::left_out},
};
constexpr TensorRow kGemma2Rows[] = {
    {"lm_head", nullptr, TensorKind::left_out},
    {"layers.#.post_attention_layernorm", "blk.#.post_attention_norm", TensorKind::norm},
    {"layers.#.pre_feedforward_layernorm", "blk.#.ffn_norm", TensorKind::norm},
    {"layers.#.post_feedforward_layernorm", "blk.#.post_ffw_norm", TensorKind::norm},
    {"vision_tower*", nullptr, TensorKind::other_modality},
    {"multi_modal_projector*", nullptr, TensorKind::other_modality},
};

constexpr TensorRow kGpt2Rows[] = {
    {"wte", "token_embd"},
    {"wpe", "position_embd"},
    {"ln_f", "output_norm"},
    {"lm_head", "output"},
    {"h.#.ln_1", "blk.#.attn_norm"},
    {"h.#.attn", nullptr, TensorKind::left_out},  // "bias" and "masked_bias" are the causal mask
    {"h.#.attn.c_attn", "blk.#.attn_qkv", TensorKind::conv1d},
    {"h.#.attn.c_proj", "blk.#.attn_output", TensorKind::conv1d},
    {"h.#.ln_2", "blk.#.ffn_norm"},
    {"h.#.mlp.c_fc", "blk.#.ffn_up", TensorKind::conv1d},
    {"h.#.mlp.c_proj", "blk.#.ffn_down", TensorKind::conv1d},
};

// Sentence embeddings are what BERT is used for in llama.cpp: its heads have no place there.
constexpr TensorRow kBertRows[] = {
    {"embeddings.word_embeddings", "token_embd"},
    {"embeddings.position_embeddings", "position_embd"},
    {"embeddings.token_type_embeddings", "token_types"},
    {"embeddings.LayerNorm", "token_embd_norm"},
    {"embeddings", nullptr, TensorKind::left_out},  // "position_ids"
    {"encoder.layer.#.attention.self.query", "blk.#.attn_q"},
    {"encoder.layer.#.attention.self.key", "blk.#.attn_k"},
    {"encoder.layer.#.attention.self.value", "blk.#.attn_v"},
    {"encoder.layer.#.attention.output.dense", "blk.#.attn_output"},
    {"encoder.layer.#.attention.output.LayerNorm", "blk.#.attn_output_norm"},
    {"encoder.layer.#.intermediate.dense", "blk.#.ffn_up"},
    {"encoder.layer.#.output.dense", "blk.#.ffn_down"},
    {"encoder.layer.#.output.LayerNorm", "blk.#.layer_output_norm"},
    {"pooler.dense", nullptr, TensorKind::left_out},
    {"cls.*", nullptr, TensorKind::left_out},
};

constexpr char kDecoderPrefixes[] = "model.language_model.|language_model.model.|language_model.|model.";

constexpr Family kFamilies[] = {
    {"llama|mistral", "llama", {}, kDecoderRows, kDecoderPrefixes, true},
    {"qwen2", "qwen2", {}, kDecoderRows, kDecoderPrefixes},
    {"qwen3", "qwen3", {}, kDecoderRows, kDecoderPrefixes},
    {"gemma", "gemma", kGemmaRows, kDecoderRows, kDecoderPrefixes, false, true},
    {"gemma2", "gemma2", kGemma2Rows, kDecoderRows, kDecoderPrefixes, false, true},
    {"gemma3|gemma3_text", "gemma3", kGemma2Rows, kDecoderRows, kDecoderPrefixes, false, true},
    {"gpt2", "gpt2", {}, kGpt2Rows, "transformer.", false, false, true},
    {"bert", "bert", {}, kBertRows, "bert.", false, false, true},
};

// Whether `pattern` is all of `module`; `layer` gets the number at its '#'.
bool matches(const char* pattern, std::string_view module, int64_t& layer) {
  constexpr size_t kMaxDigits = 6;
  size_t at = 0;
  layer = -1;
  for (; *pattern != '\0'; ++pattern) {
    if (*pattern == '*') return true;
    if (*pattern != '#') {
      if (at == module.size() || module[at++] != *pattern) return false;
      continue;
    }
    const size_t first = at;
    for (layer = 0; at < module.size() && module[at] >= '0' && module[at] <= '9'; ++at)
      if (at - first < kMaxDigits) layer = 10 * layer + (module[at] - '0');
    if (at == first || at - first > kMaxDigits) return false;
  }
  return at == module.size();
}

// A module may stand under a wrapper's name.
std::string_view without_prefix(std::string_view module, std::string_view prefixes) {
  while (!prefixes.empty()) {
    const std::string_view prefix = first_word(prefixes);
    if (module.starts_with(prefix)) return module.substr(prefix.size());
  }
  return module;
}

const TensorRow* find_row(std::span<const TensorRow> rows, std::string_view module, int64_t& layer) {
  for (const TensorRow& row : rows)
    if (matches(row.source, module, layer)) return &row;
  return nullptr;
}

}  // namespace

const Family* family_of(const json::Value& config) noexcept {
  const std::string_view type = ConfigReader(config).text("model_type");
  for (const Family& family : kFamilies)
    for (std::string_view types = family.model_types; !types.empty();)
      if (first_word(types) == type) return &family;
  return nullptr;
}

std::string family_names() {
  std::string names;
  for (const Family& family : kFamilies)
    for (std::string_view types = family.model_types; !types.empty();) {
      if (!names.empty()) names += ", ";
      names += first_word(types);
    }
  return names;
}

TensorMatch match_tensor(const Family& family, std::string_view name) {
  TensorMatch match;
  const size_t dot = name.rfind('.');
  if (dot == name.npos) return match;
  std::string_view parameter = name.substr(dot + 1);
  if (parameter == "gamma") parameter = "weight";  // norms of TensorFlow's BERT
  if (parameter == "beta") parameter = "bias";
  const std::string_view module = without_prefix(name.substr(0, dot), family.prefixes);
  match.row = find_row(family.own, module, match.layer);
  if (match.row == nullptr) match.row = find_row(family.common, module, match.layer);
  if (match.row == nullptr || match.row->target == nullptr) return match;
  if (parameter != "weight" && parameter != "bias") {
    match.row = nullptr;
    return match;
  }
  for (const char* c = match.row->target; *c != '\0'; ++c) {
    if (*c == '#')
      append_number(match.name, match.layer);
    else
      match.name += *c;
  }
  match.name += '.';
  match.name += parameter;
  return match;
}

}  // namespace wasmquant::conversion
