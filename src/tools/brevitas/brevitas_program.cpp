// The arguments of Brevitas' program for language models.
#include "config/dialects/foreign_config.h"

namespace wasmquant::config {

bool report_brevitas(const json::Value& block, const std::string& where, DiagnosticList& out) {
  if (block["weight_bit_width"].is_null() || block["weight_quant_format"].is_null()) return false;
  out.error_in("config-foreign", where, "weight_bit_width",
               "give a config of Quark's Brevitas extension, or a preset's name",
               "these are the arguments of Brevitas' program for language models, which are not read");
  return true;
}

}  // namespace wasmquant::config
