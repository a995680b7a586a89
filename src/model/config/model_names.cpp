// Words of a row are parsed, conditions decided by a config.json.
#include "model/config/model_names.h"

#include "families/config_reader.h"
#include "families/module_path.h"
#include "families/table/forward_row.h"
#include "families/word_list.h"

namespace wasmquant::model {
namespace {

constexpr std::string_view kPartWords[kParts] = {"q",
                                                 "k",
                                                 "v",
                                                 "state_in",
                                                 "mixer_strength",
                                                 "q_b",
                                                 "kv_b",
                                                 "encoded_k",
                                                 "encoded_v",
                                                 "state_out",
                                                 "o",
                                                 "gate",
                                                 "up",
                                                 "down",
                                                 "layer_gate",
                                                 "layer_out",
                                                 "qkv",
                                                 "heads_qkv",
                                                 "gate_up",
                                                 "mixer_in",
                                                 "mixer_out",
                                                 "mixer_gate",
                                                 "mixer_step",
                                                 "mixer_states",
                                                 "router",
                                                 "expert_gate",
                                                 "expert_up",
                                                 "expert_down",
                                                 "shared_gate",
                                                 "shared_up",
                                                 "shared_down",
                                                 "shared_scale",
                                                 "shared_gate_up",
                                                 "experts_gate_up",
                                                 "experts_down",
                                                 "input_norm",
                                                 "q_norm",
                                                 "k_norm",
                                                 "v_norm",
                                                 "attention_post_norm",
                                                 "feed_forward_norm",
                                                 "feed_forward_post_norm",
                                                 "dense_post_norm",
                                                 "experts_norm",
                                                 "experts_post_norm",
                                                 "layer_norm",
                                                 "low_rank_in",
                                                 "low_rank_out",
                                                 "low_rank_norm",
                                                 "stream_router",
                                                 "stream_router_norm",
                                                 "predictions",
                                                 "corrections",
                                                 "stream_scale",
                                                 "layer_scale",
                                                 "correction",
                                                 "router_scale",
                                                 "expert_scales",
                                                 "conv",
                                                 "step_bias",
                                                 "decay",
                                                 "relative_bias",
                                                 "skip",
                                                 "mixer_norm",
                                                 "mixer_key_norm",
                                                 "mixer_query_norm",
                                                 "activation",
                                                 "sinks",
                                                 "expert_biases_up",
                                                 "expert_biases_down",
                                                 "embedding",
                                                 "layer_table",
                                                 "layer_projection",
                                                 "layer_table_norm",
                                                 "stream_in",
                                                 "stream_out",
                                                 "positions",
                                                 "types",
                                                 "embedding_norm",
                                                 "final_norm",
                                                 "head",
                                                 "layers",
                                                 "prefixes"};
constexpr size_t kLinearParts = 24;

/// "KEY", or "KEY~1", which is true without the key. A positive number is true, for "KEY>1" one above 1; for "KEY^WORD" a text that begins with it.
bool holds(std::string_view key, const json::Value& config) {
  if (const size_t begin = key.find('^'); begin != key.npos) {
    const json::Value* const text = config.find(key.substr(0, begin));
    return text != nullptr && text->is_string() && text->as_string().starts_with(key.substr(begin + 1));
  }
  const bool otherwise = key.ends_with("~1"), has_several = key.ends_with(">1");
  if (otherwise || has_several) key.remove_suffix(2);
  const json::Value* const value = config.find(key);
  if (value != nullptr && value->is_number()) return value->as_number() > (has_several ? 1 : 0);
  return value != nullptr && value->is_bool() ? value->as_bool() : otherwise;
}

std::string_view words_of(std::string_view part) noexcept {
  for (const families::forward::NamesPart& row : families::forward::kParts)
    if (row.name == part) return row.words;
  return {};
}

}  // namespace

void ModelNames::add_word(std::string_view word, const json::Value* config) {
  const size_t equals = word.find('='), plus = word.find('+');
  for (size_t part = 0; part < kParts; ++part) {
    if (word.substr(0, equals) != kPartWords[part] || !modules_[part].empty()) continue;
    modules_[part] = word.substr(equals + 1, plus == word.npos ? plus : plus - equals - 1);
    if (plus == word.npos) return;
    const std::string_view key = word.substr(plus + 1);
    if (key.empty() || (config != nullptr && holds(key, *config))) biases_.set(part);
  }
}

void ModelNames::add(std::string_view words, const json::Value* config) {
  while (!words.empty()) {
    std::string_view word = families::next_word(words);
    if (const size_t colon = word.find(':'); config != nullptr && colon != word.npos) {
      const bool is_not = word.starts_with('!');
      if (holds(word.substr(is_not, colon - is_not), *config) == is_not) continue;
      word.remove_prefix(colon + 1);
    }
    if (word.starts_with('@'))
      add(words_of(word.substr(1)), config);
    else
      add_word(word, config);
  }
}

ModelNames ModelNames::of_row(std::string_view words, const json::Value& config) {
  ModelNames out;
  out.add(words, &config);
  return out;
}

ModelNames::ModelNames(std::string_view words) { add(words, nullptr); }

List<std::string> ModelNames::prefixes() const {
  List<std::string> out = names_of(ModelPart::prefixes);
  out.push_back({});
  return out;
}

List<std::string> ModelNames::names_of(ModelPart part) const {
  List<std::string> out;
  for (std::string_view rest = of(part); !rest.empty();) out.push_back(std::string(families::first_word(rest)));
  return out;
}

std::string ModelNames::text() const {
  std::string out;
  for (size_t part = 0; part < kParts; ++part) {
    if (modules_[part].empty()) continue;
    if (!out.empty()) out += ' ';
    out += kPartWords[part];
    out += '=';
    out += modules_[part];
    if (has_bias(static_cast<ModelPart>(part))) out += '+';
  }
  return out;
}

bool is_block_layer(std::string_view layer) {
  if (families::layer_index_of(layer) < 0) return false;
  const auto is_one = [&](std::string_view word) {
    word.remove_prefix(word.find(':') + 1);  // of none: 0
    const size_t equals = word.find('=');
    for (size_t part = 0; part < kLinearParts; ++part)
      if (word.substr(0, equals) == kPartWords[part])
        return families::ends_with_components(layer, word.substr(equals + 1, word.find('+') - equals - 1));
    return false;
  };
  for (const families::forward::NamesPart& part : families::forward::kParts)
    if (families::any_word(part.words, is_one)) return true;
  for (const families::forward::Row& row : families::forward::kRows)
    if (families::any_word(row.names, is_one)) return true;
  return false;
}

}  // namespace wasmquant::model
