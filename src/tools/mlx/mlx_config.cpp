// The block that MLX writes into config.json.
#include "config/dialects/foreign_config.h"

namespace wasmquant::config {

// "bits" and "group_size", perhaps "mode" and single modules by path, and no other setting.
static bool is_mlx(const json::Value& block) {
  if (!block["bits"].is_integer() || !block["group_size"].is_integer()) return false;
  for (const auto& [key, value] : block.members())
    if (key != "bits" && key != "group_size" && key != "mode" && !value.is_object() && !value.is_bool()) return false;
  return block["quant_method"].is_null() && block["desc_act"].is_null() && block["sym"].is_null() &&
         block["zero_point"].is_null();
}

bool report_mlx(const json::Value& block, const std::string& where, DiagnosticList& out) {
  if (!is_mlx(block)) return false;
  out.error_in("config-foreign", where, nullptr, kOpenTheCheckpoint,
               "this block is MLX's: it says how a checkpoint is stored, not how to quantize one");
  return true;
}

}  // namespace wasmquant::config
