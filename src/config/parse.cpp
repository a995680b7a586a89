#include "config/parse.h"

#include "config/dialects/dialects.h"
#include "config/dialects/foreign_config.h"
#include "config/match/edit_distance.h"
#include "config/presets.h"
#include "config/spec/vocabulary.h"

namespace wasmquant::config {
namespace {

// Layer classes that weight files do not contain; any dialect may state them.
void read_known_types(const json::Value& block, const std::string& where, Config& config, DiagnosticList& out) {
  for (const auto& [name, value] : block["layer_types"].members()) {
    const std::string at = pointer_to(pointer_to(where, "layer_types"), name);
    check_pattern(name, at, out);
    const std::string_view type = value.is_string() ? std::string_view(value.as_string()) : std::string_view();
    const int known = layer_type_index(type, kKnownTypes);
    if (known < 0)
      unknown_word(value.is_string() ? type : json::describe(value.kind()), at, kKnownTypes, out);
    else
      config.layer_types.emplace_back(name, kKnownTypes[static_cast<size_t>(known)]);
  }
}

}  // namespace

std::optional<Config> parse(const json::Value& value, std::string_view dialect, DiagnosticList& out) {
  std::optional<Dialect> asked;
  if (dialect != "auto") {
    asked = dialect_named(dialect);
    if (!asked) {
      unknown_word(dialect, "", kDialectNames, out);
      return std::nullopt;
    }
  }
  if (value.is_string()) return parse_preset(value.as_string(), dialect, out);
  std::string where;
  const json::Value* block = &value;
  if (const json::Value* inner = value.find("quantization_config")) {
    block = inner;
    where = "/quantization_config";
  } else if (value["text_config"]["quantization_config"].is_object()) {  // of a multimodal model
    block = &value["text_config"]["quantization_config"];
    where = "/text_config/quantization_config";
  } else if (value.find("global_quant_config") == nullptr &&
             (value.find("model_type") != nullptr || value.find("architectures") != nullptr)) {
    out.error_in("key-missing", "", nullptr, "give a quantization config or a preset's name",
                 "this config.json has no quantization_config");
    return std::nullopt;
  }
  if (!asked && report_foreign(*block, where, out)) return std::nullopt;
  std::optional<Dialect> own = Dialect();
  if (block->is_object()) own = detect_dialect(*block, where, out);
  if (!own) return std::nullopt;
  if (asked && *own != *asked && (block->find("dialect") != nullptr || block->find("quant_method") != nullptr)) {
    out.error_in("dialect-mismatch", where, nullptr, "leave out the dialect: it is recognized from the keys",
                 "the config is in dialect {}, but {} was requested", name_of(*own), name_of(*asked));
    return std::nullopt;
  }
  const Dialect used = asked.value_or(*own);
  Config config = info_of(used).read(*block, where, out);
  read_known_types(*block, where, config, out);
  config.default_exclusions = (*block)["default_exclusions"].as_bool();
  if (index_of_word((*block)["non_finite"].as_string(), kNonFinite) == 1) config.non_finite = NonFinite::saturate;
  if (index_of_word((*block)["indivisible_groups"].as_string(), kIndivisibleGroups) == 1)
    config.indivisible_groups = IndivisibleGroups::fallback;
  return config;
}

}  // namespace wasmquant::config
