// Rows of tensor names for each architecture of llama.cpp, and the search for the row of a module's name.
#include "core/message.h"
#include "families/config_reader.h"
#include "gguf_conversion/family.h"

namespace wasmquant::conversion {
namespace {

constexpr TensorRow kDecoderRows[] = {
    {"embed_tokens", "token_embd"},
    {"norm", "output_norm", TensorKind::norm},
    {"lm_head", "output"},
    {"#input_layernorm", "attn_norm", TensorKind::norm},
    {"#self_attn.q_proj", "attn_q", TensorKind::query},
    {"#self_attn.k_proj", "attn_k", TensorKind::key},
    {"#self_attn.v_proj", "attn_v"},
    {"#self_attn.o_proj", "attn_output"},
    {"#self_attn.q_norm", "attn_q_norm", TensorKind::norm},
    {"#self_attn.k_norm", "attn_k_norm", TensorKind::norm},
    {"#self_attn.rotary_emb", nullptr, TensorKind::left_out},
    {"#post_attention_layernorm", "ffn_norm", TensorKind::norm},
    {"#mlp.gate_proj", "ffn_gate"},
    {"#mlp.up_proj", "ffn_up"},
    {"#mlp.down_proj", "ffn_down"},
    {"rotary_emb", nullptr, TensorKind::left_out},
};

// Gemma's embedding is its head, regardless of other tensors in the file.
constexpr TensorRow kGemmaRows[] = {
    {"lm_head", nullptr, TensorKind::left_out},
};
constexpr TensorRow kGemma2Rows[] = {
    {"lm_head", nullptr, TensorKind::left_out},
    {"#post_attention_layernorm", "post_attention_norm", TensorKind::norm},
    {"#pre_feedforward_layernorm", "ffn_norm", TensorKind::norm},
    {"#post_feedforward_layernorm", "post_ffw_norm", TensorKind::norm},
    {"vision_tower*", nullptr, TensorKind::other_modality},
    {"multi_modal_projector*", nullptr, TensorKind::other_modality},
};

constexpr TensorRow kGpt2Rows[] = {
    {"wte", "token_embd"},
    {"wpe", "position_embd"},
    {"ln_f", "output_norm"},
    {"lm_head", "output"},
    {"#ln_1", "attn_norm"},
    {"#attn", nullptr, TensorKind::left_out},  // "bias" and "masked_bias" are the causal mask
    {"#attn.c_attn", "attn_qkv", TensorKind::conv1d},
    {"#attn.c_proj", "attn_output", TensorKind::conv1d},
    {"#ln_2", "ffn_norm"},
    {"#mlp.c_fc", "ffn_up", TensorKind::conv1d},
    {"#mlp.c_proj", "ffn_down", TensorKind::conv1d},
};

// llama.cpp uses BERT for sentence embeddings; its heads have no counterpart.
constexpr TensorRow kBertRows[] = {
    {"embeddings.word_embeddings", "token_embd"},
    {"embeddings.position_embeddings", "position_embd"},
    {"embeddings.token_type_embeddings", "token_types"},
    {"embeddings.LayerNorm", "token_embd_norm"},
    {"embeddings", nullptr, TensorKind::left_out},  // "position_ids"
    {"#attention.self.query", "attn_q"},
    {"#attention.self.key", "attn_k"},
    {"#attention.self.value", "attn_v"},
    {"#attention.output.dense", "attn_output"},
    {"#attention.output.LayerNorm", "attn_output_norm"},
    {"#intermediate.dense", "ffn_up"},
    {"#output.dense", "ffn_down"},
    {"#output.LayerNorm", "layer_output_norm"},
    {"pooler.dense", nullptr, TensorKind::left_out},
    {"cls.*", nullptr, TensorKind::left_out},
};

constexpr char kDecoderPrefixes[] = "model.language_model.|language_model.model.|language_model.|model.";

constexpr char kDecoderLayers[] = "layers.";

// By GgufRows.
constexpr struct {
  std::span<const TensorRow> own, common;
  const char *prefixes, *layers;
} kLayouts[] = {
    {},
    {{}, kDecoderRows, kDecoderPrefixes, kDecoderLayers},
    {kGemmaRows, kDecoderRows, kDecoderPrefixes, kDecoderLayers},
    {kGemma2Rows, kDecoderRows, kDecoderPrefixes, kDecoderLayers},
    {{}, kGpt2Rows, "transformer.", "h."},
    {{}, kBertRows, "bert.", "encoder.layer."},
};

// Whether `pattern` is all of `module`, or all up to its '*'.
bool matches(const char* pattern, std::string_view module) {
  for (size_t at = 0; *pattern != '*'; ++pattern, ++at) {
    if (at == module.size()) return *pattern == '\0';
    if (module[at] != *pattern) return false;
  }
  return true;
}

// The number in "<layers>12.rest", and the rest; -1 if the module is not in a layer.
int64_t take_layer(std::string_view& module, std::string_view layers) {
  constexpr size_t kMaxDigits = 6;
  if (!module.starts_with(layers)) return -1;
  const size_t first = layers.size(), dot = module.find('.', first);
  if (dot == module.npos || dot == first || dot - first > kMaxDigits) return -1;
  int64_t layer = 0;
  for (const char c : module.substr(first, dot - first)) {
    if (c < '0' || c > '9') return -1;
    layer = 10 * layer + (c - '0');
  }
  module.remove_prefix(dot + 1);
  return layer;
}

// Removes a wrapper's name from the front.
std::string_view without_prefix(std::string_view module, std::string_view prefixes) {
  while (!prefixes.empty()) {
    const std::string_view prefix = families::first_word(prefixes);
    if (module.starts_with(prefix)) return module.substr(prefix.size());
  }
  return module;
}

const TensorRow* find_row(std::span<const TensorRow> rows, std::string_view module, bool in_layer) {
  for (const TensorRow& row : rows)
    if ((row.source[0] == '#') == in_layer && matches(row.source + (in_layer ? 1 : 0), module)) return &row;
  return nullptr;
}

}  // namespace

const Family* family_of(const json::Value& config) noexcept {
  const std::string_view type = families::ConfigReader(config).text("model_type");
  for (const Family& family : families::kFamilyRows)
    if (family.architecture != nullptr && type == family.model_type) return &family;
  return nullptr;
}

const Family* family_of_architecture(std::string_view architecture) noexcept {
  const Family* found = nullptr;
  for (const Family& family : families::kFamilyRows) {
    if (family.architecture == nullptr || architecture != family.architecture) continue;
    if (found == nullptr || !found->runs_with(families::kRuns)) found = &family;
  }
  return found;
}

std::string family_names() {
  std::string names;
  for (const Family& family : families::kFamilyRows) {
    if (family.architecture == nullptr) continue;
    if (!names.empty()) names += ", ";
    names += family.model_type;
  }
  return names;
}

TensorMatch match_tensor(const Family& family, std::string_view name) {
  TensorMatch match;
  const auto& layout = kLayouts[static_cast<size_t>(family.rows)];
  const size_t dot = name.rfind('.');
  if (dot == name.npos) return match;
  std::string_view parameter = name.substr(dot + 1);
  if (parameter == "gamma") parameter = "weight";  // norms of TensorFlow's BERT
  if (parameter == "beta") parameter = "bias";
  std::string_view module = without_prefix(name.substr(0, dot), layout.prefixes);
  match.layer = take_layer(module, layout.layers);
  const bool in_layer = match.layer >= 0;
  match.row = find_row(layout.own, module, in_layer);
  if (match.row == nullptr) match.row = find_row(layout.common, module, in_layer);
  if (match.row == nullptr || match.row->target == nullptr) return match;
  if (parameter != "weight" && parameter != "bias") {
    match.row = nullptr;
    return match;
  }
  if (in_layer) match.name = text_of("blk.{}.", match.layer);
  match.name += match.row->target;
  match.name += '.';
  match.name += parameter;
  return match;
}

}  // namespace wasmquant::conversion
