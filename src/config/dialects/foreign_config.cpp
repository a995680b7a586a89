// What only checkpoints have as quant_method, and the list of what tools report.
#include "config/dialects/foreign_config.h"

#include <algorithm>
#include <string_view>

#include "core/message.h"

namespace wasmquant::config {
namespace {

// What transformers, vLLM and SGLang call their methods: as `quant_method` has it.
constexpr std::string_view kStoredMethods[] = {
    "aqlm", "auto-round", "bitnet", "bitsandbytes", "eetq", "exl3", "fbgemm_fp8", "fp_quant", "higgs", "hqq",
    "mlx",  "modelopt",   "mxfp4",  "quanto",       "quip", "sinq", "spqr",       "torchao",  "vptq",
};
constexpr bool (*kReports[])(const json::Value&, const std::string&, DiagnosticList&) = {
#define WASMQUANT_FOREIGN(function) function,
#include "tools/tools.def"
};

}  // namespace

bool report_stored_method(const json::Value& block, const std::string& where, DiagnosticList& out) {
  const std::string& method = block["quant_method"].as_string();
  if (std::find(std::begin(kStoredMethods), std::end(kStoredMethods), method) == std::end(kStoredMethods)) return false;
  out.error_in("value-unknown", where, "quant_method", kOpenTheCheckpoint,
               "{q} says how a checkpoint is stored, not how to quantize one", method);
  return true;
}

bool report_foreign(const json::Value& block, const std::string& where, DiagnosticList& out) {
  return std::any_of(std::begin(kReports), std::end(kReports),
                     [&](const auto& report) { return report(block, where, out); });
}

}  // namespace wasmquant::config
