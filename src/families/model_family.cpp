#include "families/model_family.h"

#include <algorithm>

namespace wasmquant::families {

namespace {

// config.json has few levels; the parser bounds them.
void add_model_types(const json::Value& config, List<std::string>& out) {
  if (const std::string& type = config["model_type"].as_string(); !type.empty()) out.push_back(type);
  for (const auto& [key, value] : config.members())
    if (value.is_object()) add_model_types(value, out);
}

}  // namespace

ModelFamily ModelFamily::read(const json::Value& config) {
  ModelFamily family;
  const json::Value& text = config["text_config"].is_object() ? config["text_config"] : config;
  family.model_type = config["model_type"].as_string();
  if (&text != &config) family.text_model_type = text["model_type"].as_string();
  if (const json::Array& classes = config["architectures"].items(); !classes.empty())
    family.architecture = classes[0].as_string();
  add_model_types(config, family.model_types);
  family.hidden_layers = text["num_hidden_layers"].as_integer();
  family.ties_head = config["tie_word_embeddings"].as_bool() || text["tie_word_embeddings"].as_bool();
  family.is_quantized = config["quantization_config"].is_object();
  return family;
}

bool ModelFamily::has(std::string_view type) const noexcept {
  return is(type) || std::find(model_types.begin(), model_types.end(), type) != model_types.end();
}

bool ModelFamily::generates() const noexcept {
  if (architecture.empty()) return true;
  // ColPali and ShieldGemma 2 are complete language models with a different head.
  if (architecture.ends_with("ForRetrieval") || architecture.starts_with("ShieldGemma2")) return true;
  return architecture.find("For") == std::string::npos
             ? false
             : architecture.ends_with("ForCausalLM") || architecture.ends_with("ForConditionalGeneration") ||
                   architecture.ends_with("ForSpeechSeq2Seq") || architecture.ends_with("ForImageTextToText");
}

}  // namespace wasmquant::families
