// Plans of GGUF files: from GGUF, every key copied; from Hugging Face's layout, names, metadata and tokenizer
// converted.
#pragma once
#include <string_view>

#include "gguf_conversion/conversion.h"
#include "pipeline/plan/plan.h"

namespace wasmquant {

/// What a conversion reads beside the weights; views into `model`.
conversion::ModelFiles model_files(const ModelIndex& model, std::string_view name);

/// Errors: those of conversion::convert; format-unsupported for types that cannot be dequantized;
/// memory-budget. `config.dialect` is gguf.
Result<Plan> make_gguf_plan(const ModelIndex& model, const Config& config, const PlanOptions& options,
                            List<Diagnostic>& diagnostics);

}  // namespace wasmquant
