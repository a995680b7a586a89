// What NVIDIA ModelOpt writes: the block of config.json, hf_quant_config.json, recipes.
#include "config/dialects/foreign_config.h"

namespace wasmquant::config {

bool report_modelopt(const json::Value& block, const std::string& where, DiagnosticList& out) {
  const auto report = [&](const char* key, const char* hint, const char* what) {
    out.error_in("config-foreign", where, key, hint, what);
    return true;
  };
  if (block["quant_algo"].is_string())
    return report("quant_algo", kOpenTheCheckpoint,
                  "this block is NVIDIA ModelOpt's: it says how a checkpoint is stored, not how to quantize one");
  if (block["quantization"]["quant_algo"].is_string())
    return report(
        "quantization", kOpenTheCheckpoint,
        "this is NVIDIA ModelOpt's hf_quant_config.json: it says how a checkpoint is stored, not how to quantize one");
  if (!block["quant_cfg"].is_null())
    return report("quant_cfg", kGiveAConfig, "this is a recipe of NVIDIA ModelOpt, which cannot be read");
  return false;
}

}  // namespace wasmquant::config
