// The block of config.json or of a file next to it, and its keys by the rows of tools.def.
#include "pipeline/stored/source_block.h"

#include <algorithm>

#include "families/config_blocks.h"

namespace wasmquant {
namespace {

// Where tools wrote their block before config.json held it, and what it does not say itself.
struct OldFile {
  const char *name, *method;
};
constexpr OldFile kOldFiles[] = {{"quantize_config.json", "gptq"}, {"quant_config.json", "awq"}};

struct Fields {
  std::string_view method, known, refused;
};
constexpr Fields kFields[] = {
#define WASMQUANT_SOURCE_FIELDS(method, known, refused) {method, known, refused},
#include "tools/tools.def"
};
// What any block may have.
constexpr std::string_view kCommon = "quant_method|dialect|$schema|layer_types|default_exclusions|indivisible_groups";

// mlx-lm writes models that it did not quantize, too.
bool is_written_by_mlx(const ModelIndex& model) {
  for (const auto& [key, value] : model.metadata(0))
    if (key == "format" && value == "mlx") return true;
  return false;
}

bool lists(std::string_view words, std::string_view word) {
  return text_of("|{}|", words).find(text_of("|{}|", word)) != std::string::npos;
}

bool says_nothing(const json::Value& value) noexcept {
  return value.is_null() || (value.is_bool() && !value.as_bool()) || (value.is_string() && value.as_string().empty()) ||
         (value.is_object() && value.members().empty()) || (value.is_array() && value.items().empty());
}

// Of the rotations of algo_config those that the runtime completes: r4, and r1 if it is online. This library's files say so in
// config.json, too, where forward passes and plans see it.
Status check_rotations(const SourceBlock& block, const json::Value& config) {
  if (!config["input_rotation"].members().empty()) return {};
  const json::Value& list = block.value["algo_config"];
  for (size_t i = 0; i < std::max<size_t>(list.items().size(), 1); ++i) {
    const json::Value& algorithm = list.is_array() && !list.items().empty() ? list.items()[i] : list;
    const std::string& name = algorithm["name"].as_string();
    const json::Value& r4 = algorithm["r4"];
    const bool rotates = name == "rotation" || name == "quarot";
    const bool is_online = (r4.is_null() ? name == "quarot" : r4.as_bool()) ||
                           algorithm["online_r1_rotation"].as_bool() || !says_nothing(algorithm["online_config"]);
    if (rotates && is_online)
      return error_at(ErrorCode::format_unsupported, text_of("{}/algo_config/{}", block.where, i),
                      "found {q} with a rotation that the runtime applies to inputs of layers, for which the weights "
                      "were made; such weights are not decoded; start from the checkpoint that this one was made from",
                      name);
  }
  return {};
}

}  // namespace

Result<SourceBlock> source_block(const json::Value& config, const ModelIndex* model) {
  const auto sibling = [&](const char* name) {
    return model == nullptr ? std::string_view() : model->sibling_file(name);
  };
  SourceBlock block;
  const List<ConfigBlock> blocks = config_blocks(config);
  if (!blocks.empty()) {
    block.value = *blocks.front().value;
    block.where = blocks.front().where();
    block.method = block.value["quant_method"].as_string();
    if (block.method == "intel/auto-round") block.method = "auto-round";
  }
  if (block.method.empty() && (is_unnamed_block(config["quantization"]) || is_unnamed_block(block.value))) {
    if (!is_unnamed_block(block.value)) block.value = config["quantization"], block.where = "/quantization";
    block.method = "mlx";
  } else if (block.method.empty() && block.value["quant_algo"].is_string()) {  // ModelOpt's, of older versions
    block.method = "modelopt";
  } else if (block.value.is_null() && !sibling("hf_quant_config.json").empty()) {
    TRY(parsed, json::parse(sibling("hf_quant_config.json")));
    if (parsed["quantization"].is_object()) block.method = "modelopt";
    if (parsed["quantization"].is_object()) block.value = parsed["quantization"];
    block.where = "hf_quant_config.json";
  }
  for (const OldFile& file : kOldFiles) {
    if (block.is_declared() || sibling(file.name).empty()) continue;
    auto parsed = json::parse(sibling(file.name));
    if (!parsed) return error_at(parsed.error().code, file.name, "{}", parsed.error().message);
    if (!(*parsed)["quant_method"].is_string()) parsed->set("quant_method", file.method);
    block.value = std::move(*parsed);
    block.where = file.name;
    block.method = block.value["quant_method"].as_string();
  }
  if (!block.is_declared() && model != nullptr && is_written_by_mlx(*model)) block.method = "mlx";
  return block;
}

Status check_fields(const SourceBlock& block, const json::Value& config, List<Diagnostic>& remarks) {
  TRY_VOID(check_rotations(block, config));
  for (const Fields& fields : kFields) {
    if (fields.method != block.method) continue;
    for (const auto& [key, value] : block.value.members()) {
      const std::string where = text_of("{}/{}", block.where, json::pointer_token(key));
      const json::Value& meta = value["rotation"];  // of gptqmodel's `meta`
      if (lists(fields.refused, key) ? !says_nothing(value) : lists(fields.refused, "rotation") && !says_nothing(meta))
        return error_at(ErrorCode::format_unsupported, where,
                        "found {}: codes of {} that depend on it are not decoded; start from the checkpoint that this "
                        "one was made from",
                        json::write(value), block.method);
      const bool is_of_module = fields.method == "mlx" && (value.is_object() || value.is_bool());
      if (is_of_module || lists(fields.known, key) || lists(fields.refused, key) || lists(kCommon, key)) continue;
      remarks.push_back({Severity::warning, "key-unknown", where,
                         text_of("the checkpoint's {} block has a key that nothing here knows: weights are decoded as "
                                 "if it were not there",
                                 block.method),
                         "look up in the tool that wrote it whether it changes the weights"});
    }
  }
  return {};
}

}  // namespace wasmquant
