// config.json of a folder output: the model's own text, in which only what the plan says differs.
#pragma once
#include <string>
#include <string_view>

#include "core/result.h"
#include "pipeline/plan/plan.h"

namespace wasmquant {

/// `original`: text of the config.json beside the input, "" for none. Set are quantization_config (removed where the
/// weights were decoded), Plan::config_changes (in text_config, too, where the model has one: multimodal models say
/// there what their text part is), and what transformers.js must know of an ONNX model with external data. "": the
/// output has no config.json. Errors: json-invalid of `original`.
Result<std::string> output_config(const Plan& plan, std::string_view original);

}  // namespace wasmquant
