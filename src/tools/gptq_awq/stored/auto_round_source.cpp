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

// Widths and groups of single layers are seen in their tensors; what else may differ is not.
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
    return packed_words_source(words);
  }
  return error_at(
      ErrorCode::format_unsupported, "/quantization_config/packing_format",
      "found auto-round with packing_format {q}, data_type {q}; auto-round is decoded with data_type int in "
      "auto_round, auto_round:auto_gptq and auto_round:auto_awq",
      name, block["data_type"].as_string());
}

}  // namespace wasmquant
