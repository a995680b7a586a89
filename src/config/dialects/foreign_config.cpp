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
constexpr const char* kGiveAConfig =
    "open the checkpoint as a model; for the config, give a preset's name or a config of Quark";

bool has_ending(const json::Value& block, std::string_view ending) {
  for (const auto& [key, value] : block.members())
    if (std::string_view(key).ends_with(ending) && value.is_object()) return true;
  return false;
}

// "bits" and "group_size", perhaps "mode" and single modules by path, and no other setting.
bool is_mlx(const json::Value& block) {
  if (!block["bits"].is_integer() || !block["group_size"].is_integer()) return false;
  for (const auto& [key, value] : block.members())
    if (key != "bits" && key != "group_size" && key != "mode" && !value.is_object() && !value.is_bool()) return false;
  return block["quant_method"].is_null() && block["desc_act"].is_null() && block["sym"].is_null() &&
         block["zero_point"].is_null();
}

}  // namespace

bool report_foreign(const json::Value& block, const std::string& where, DiagnosticList& out) {
  const auto report = [&](const char* key, const char* hint, const char* what) {
    out.error_in("config-foreign", where, key, hint, what);
    return true;
  };
  if (block["quant_algo"].is_string())
    return report("quant_algo", kGiveAConfig,
                  "this block is NVIDIA ModelOpt's: it says how a checkpoint is stored, not how to quantize one");
  if (block["quantization"]["quant_algo"].is_string())
    return report(
        "quantization", kGiveAConfig,
        "this is NVIDIA ModelOpt's hf_quant_config.json: it says how a checkpoint is stored, not how to quantize one");
  if (const std::string& method = block["quant_method"].as_string();
      std::find(std::begin(kStoredMethods), std::end(kStoredMethods), method) != std::end(kStoredMethods)) {
    out.error_in("value-unknown", where, "quant_method", kGiveAConfig,
                 "{q} says how a checkpoint is stored, not how to quantize one", method);
    return true;
  }
  if (is_mlx(block))
    return report(nullptr, kGiveAConfig,
                  "this block is MLX's: it says how a checkpoint is stored, not how to quantize one");
  if (has_ending(block, "_stage") || has_ending(block, "_modifiers"))
    return report(nullptr, "give config_groups and ignore of its modifier: they are a compressed-tensors config",
                  "this is a recipe of llm-compressor, which is not read");
  if (!block["quant_cfg"].is_null())
    return report("quant_cfg", "give a preset's name or a config of Quark",
                  "this is a recipe of NVIDIA ModelOpt, which is not read");
  if (!block["weight_bit_width"].is_null() && !block["weight_quant_format"].is_null())
    return report("weight_bit_width", "give a config of Quark's Brevitas extension, or a preset's name",
                  "these are the arguments of Brevitas' program for language models, which are not read");
  return false;
}

}  // namespace wasmquant::config
