// config.json of a folder output: the model's own text with the plan's changes.
#pragma once
#include <string>
#include <string_view>

#include "core/result.h"
#include "pipeline/plan/plan.h"

namespace wasmquant {

/// `original`: the input's config.json, or ""; `parsed`: what it says. Sets quantization_config (removed if the weights were
/// decoded), Plan::config_changes (also in text_config of multimodal models), and what transformers.js needs for ONNX
/// external data. Returns "" if the output has no config.json. Errors: that of `parsed`.
Result<std::string> output_config(const Plan& plan, std::string_view original, const Result<json::Value>& parsed);

}  // namespace wasmquant
