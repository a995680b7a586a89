#include "gguf_conversion/gguf_config.h"

#include "core/message.h"
#include "gguf_conversion/architectures/family.h"

namespace wasmquant::conversion {
namespace {

struct KeyRow {
  const char* key;   // after "<architecture>."
  const char* name;  // in config.json
  bool is_count;
};
constexpr KeyRow kKeyRows[] = {
    {"context_length", "max_position_embeddings", true},
    {"embedding_length", "hidden_size", true},
    {"block_count", "num_hidden_layers", true},
    {"feed_forward_length", "intermediate_size", true},
    {"attention.head_count", "num_attention_heads", true},
    {"attention.head_count_kv", "num_key_value_heads", true},
    {"attention.key_length", "head_dim", true},
    {"attention.layer_norm_rms_epsilon", "rms_norm_eps", false},
    {"attention.layer_norm_epsilon", "layer_norm_eps", false},
    {"attention.sliding_window", "sliding_window", true},
    {"attn_logit_softcapping", "attn_logit_softcapping", false},
    {"final_logit_softcapping", "final_logit_softcapping", false},
    {"rope.freq_base", "rope_theta", false},
    {"rope.freq_base_swa", "rope_local_base_freq", false},
};

// llama.cpp divides queries by the root of this: the head size, or for 27B models hidden_size / heads.
uint64_t attention_scalar(const Family& family, const json::Value& config) {
  const int64_t layers = config["num_hidden_layers"].as_integer(), heads = config["num_attention_heads"].as_integer();
  const bool is_27b = layers == family.layers_of_27b;
  return static_cast<uint64_t>(is_27b && heads > 0 ? config["hidden_size"].as_integer() / heads
                                                   : config["head_dim"].as_integer());
}

// What config.json most likely had: of the numbers that are rounded to this float32, the decimal with six digits.
double decimal_of(double number) {
  const auto rounded = static_cast<float>(number);
  const auto decimal = json::parse(text_of("{}", rounded));
  const bool is_same = decimal && static_cast<float>(decimal->as_number()) == rounded;
  return is_same ? decimal->as_number() : number;
}

}  // namespace

Result<json::Value> config_of_gguf(const gguf::Metadata& metadata) {
  const std::string_view architecture = metadata.find_text("general.architecture").value_or("");
  json::Value config;
  const Family* const family = family_of_architecture(architecture);
  if (family == nullptr)
    return error_at(ErrorCode::format_unsupported, "general.architecture", "models of type {q} are not run; {}",
                    architecture, families_near(architecture));
  config.set("model_type", family->model_type);
  std::string key;
  const auto full_key = [&](const char* name) -> const std::string& {
    key.assign(architecture);
    key += '.';
    return key += name;
  };
  for (const KeyRow& row : kKeyRows) {
    if (row.is_count) {
      if (const auto count = metadata.find_count(full_key(row.key))) config.set(row.name, *count);
    } else if (const auto number = metadata.find_number(full_key(row.key))) {
      config.set(row.name, decimal_of(*number));
    }
  }
  if (family->converts_with(families::kSlides)) config.set("query_pre_attn_scalar", attention_scalar(*family, config));
  const std::string_view type = metadata.find_text(full_key("rope.scaling.type")).value_or("none");
  if (type != "none") {
    json::Value scaling;
    scaling.set("rope_type", type);
    if (const auto factor = metadata.find_number(full_key("rope.scaling.factor")))
      scaling.set("factor", decimal_of(*factor));
    config.set("rope_scaling", std::move(scaling));
  }
  return config;
}

}  // namespace wasmquant::conversion
