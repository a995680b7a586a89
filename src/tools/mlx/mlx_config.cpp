// The block that MLX writes into config.json.
#include "config/dialects/foreign_config.h"
#include "families/config_blocks.h"

namespace wasmquant::config {

bool report_mlx(const json::Value& block, const std::string& where, DiagnosticList& out) {
  if (!is_unnamed_block(block)) return false;
  out.error_in("config-foreign", where, nullptr, kOpenTheCheckpoint,
               "this block is MLX's: it says how a checkpoint is stored, not how to quantize one");
  return true;
}

}  // namespace wasmquant::config
