// Intel AutoRound's integers: words of GPTQ or AWQ under its own `packing_format`.
#include "pipeline/stored/source_format.h"

namespace wasmquant {

MakeSourceFormat packed_words_source;

namespace {

struct Packing {
  std::string_view name;
  const char* quant_method;
  const char* checkpoint_format;  // of gptq: version 1 stores zero points less 1, version 2 as they are
};
constexpr Packing kPackings[] = {
    {"auto_round", "gptq", "gptq_v2"},        {"auto_round:gptqmodel", "gptq", "gptq_v2"},
    {"auto_round:auto_gptq", "gptq", "gptq"}, {"auto_round:gptq", "gptq", "gptq"},
    {"auto_round:auto_awq", "awq", nullptr},  {"auto_round:awq", "awq", nullptr},
};

constexpr int64_t kFloatBits = 16;  // `bits` of a layer that is not quantized

bool is_integer(const json::Value& object) {
  return object["data_type"].is_null() || object["data_type"].as_string() == "int";
}

// A layer's name or a regular expression, as an expression.
std::string pattern_of(std::string_view key) {
  if (key.find_first_of("*+?[(|^$\\") != std::string_view::npos) return std::string(key);
  std::string pattern = "^";
  for (const char c : key) {
    if (c == '.') pattern += '\\';
    pattern += c;
  }
  return pattern += '$';
}

// Widths and groups that single layers have for themselves, in GPTQ's words for them.
json::Value dynamic_of(const json::Value& block) {
  json::Value dynamic{json::Object()};
  for (const auto& [layer, own] : block["extra_config"].members()) {
    if (own["bits"].is_integer() && own["bits"].as_integer() >= kFloatBits) continue;  // it has no words
    json::Value said;
    for (const char* key : {"bits", "group_size"})
      if (own[key].is_integer() && !(own[key] == block[key])) said.set(key, own[key]);
    if (!said.is_null()) dynamic.set(text_of("+:{}", pattern_of(layer)), std::move(said));
  }
  return dynamic;
}

// What else may differ is not read.
Status check_layers(const json::Value& block, bool is_awq) {
  for (const auto& [layer, own] : block["extra_config"].members()) {
    if (own["bits"].is_integer() && own["bits"].as_integer() >= kFloatBits) continue;
    const bool same_sign = own["sym"].is_null() || own["sym"].as_bool() == block["sym"].as_bool();
    const bool same_bits = !is_awq || own["bits"].is_null() || own["bits"].as_integer() == block["bits"].as_integer();
    if (is_integer(own) && same_sign && same_bits) continue;
    return error_at(ErrorCode::format_unsupported, "/quantization_config/extra_config",
                    "{q} differs in data_type, sym or bits from the other layers; auto-round is decoded where layers "
                    "differ in bits (gptq only) and group_size",
                    layer);
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<SourceFormat>> auto_round_source(const json::Value& block) {
  const std::string& name = block["packing_format"].as_string();
  for (const Packing& packing : kPackings) {
    if (packing.name != name || !is_integer(block)) continue;
    TRY_VOID(check_layers(block, packing.checkpoint_format == nullptr));
    json::Value words = block;
    words.set("quant_method", packing.quant_method);
    if (packing.checkpoint_format != nullptr) words.set("checkpoint_format", packing.checkpoint_format);
    words.set("dynamic", dynamic_of(block));
    return packed_words_source(words);
  }
  return error_at(
      ErrorCode::format_unsupported, "/quantization_config/packing_format",
      "found auto-round with packing_format {q}, data_type {q}; auto-round is decoded with data_type int in "
      "auto_round, auto_round:auto_gptq and auto_round:auto_awq",
      name, block["data_type"].as_string());
}

}  // namespace wasmquant
