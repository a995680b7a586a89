// Recipes of llm-compressor, which writes compressed-tensors.
#include "config/dialects/foreign_config.h"

namespace wasmquant::config {

static bool has_ending(const json::Value& block, std::string_view ending) {
  for (const auto& [key, value] : block.members())
    if (std::string_view(key).ends_with(ending) && value.is_object()) return true;
  return false;
}

bool report_llm_compressor(const json::Value& block, const std::string& where, DiagnosticList& out) {
  if (!has_ending(block, "_stage") && !has_ending(block, "_modifiers")) return false;
  out.error_in("config-foreign", where, nullptr,
               "use config_groups and ignore of its modifier: together they are a compressed-tensors config",
               "this is a recipe of llm-compressor, which cannot be read");
  return true;
}

}  // namespace wasmquant::config
