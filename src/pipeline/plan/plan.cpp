#include "pipeline/plan/plan.h"

#include "config/config_api.h"
#include "config/dialects/dialects.h"
#include "pipeline/calibration/algorithm_list.h"
#include "pipeline/plan/checkpoint_plan.h"
#include "pipeline/plan/coverage.h"
#include "pipeline/plan/gguf_plan.h"
#include "pipeline/plan/onnx_plan.h"

namespace wasmquant {
namespace {

// Where nothing is known of norms.
void warn_of_norms(const Config& config, List<Diagnostic>& diagnostics) {
  const List<AskedAlgorithm> asked = asked_algorithms(config);
  const AskedAlgorithm* const merge = find_merge(asked);
  if (merge != nullptr && !merge->is_implied)
    diagnostics.push_back({Severity::warning, "not-applied", merge->where,
                           "batch norms are folded in ONNX models alone: weight files do not say what follows what",
                           ""});
}

}  // namespace

Diagnostic requantized_warning(uint64_t tensors) {
  return {Severity::warning, "requantized", "",
          text_of("{} tensors were quantized already; rounding them again costs precision", tensors),
          "start from F32, F16 or BF16 where you can"};
}

namespace {

Result<Plan> make_any_plan(const ModelIndex& model, std::string_view config_text, const PlanOptions& options,
                           List<Diagnostic>& diagnostics) {
  const std::string_view given = options.format.empty() && model.is_gguf() ? "gguf" : std::string_view(options.format);
  TRY(parsed, config::parse_for_format(config_text, given, &diagnostics));
  const bool is_recipe = parsed.config.dialect == Dialect::gguf;
  const std::string asked = !options.format.empty()        ? options.format
                            : is_recipe || model.is_gguf() ? "gguf"
                            : model.onnx() != nullptr      ? "onnx"
                                                           : "compressed-tensors";
  if (model.onnx() != nullptr && is_recipe)
    return error_at(ErrorCode::format_unsupported, "recipe",
                    "{} is a recipe for GGUF files, and this is an ONNX model: take a preset like int4_wo_32, int8 or "
                    "int8_dynamic",
                    parsed.config.source["recipe"].as_string());
  if ((model.onnx() != nullptr) != (asked == "onnx"))
    return error_at(ErrorCode::format_unsupported, "format",
                    "ONNX files are made of ONNX models, and nothing else is: the model is {}, the format {}",
                    model.onnx() != nullptr ? "onnx"
                    : model.is_gguf()       ? "gguf"
                                            : "safetensors",
                    asked);
  if (options.gguf.shard_bytes != 0 && asked != "gguf")
    return error_at(ErrorCode::format_unsupported, "shardBytes",
                    "only gguf is cut into parts of a given size; {} has the files of its source", asked);
  if (asked == "onnx") return make_onnx_plan(model, parsed.config, options, diagnostics);
  warn_of_norms(parsed.config, diagnostics);
  if (asked == "gguf") {
    if (is_recipe) return make_gguf_plan(model, parsed.config, options, diagnostics);
    return error_at(
        ErrorCode::format_unsupported, "format",
        "GGUF holds llama.cpp's types, which round by themselves: take a preset like q4_k_m or q8_0, or a "
        "config with \"dialect\": \"gguf\", which may list rotation, cle, smooth and awq; and calibration or an "
        "imatrix for importance. What gptq makes can be written as fake-quantized, and a GGUF file be made of that");
  }
  if (is_recipe)
    return error_at(ErrorCode::format_unsupported, "format", "{} is a recipe for GGUF files; {} cannot hold it",
                    parsed.config.source["recipe"].as_string(), asked);
  if (model.is_gguf())
    return error_at(ErrorCode::format_unsupported, "format",
                    "a GGUF model can be written as gguf alone: {} keeps names and parts that GGUF files lack", asked);
  const CheckpointFormat* format = checkpoint_format_named(asked);
  if (format == nullptr || format->is_read_only())
    return error_at(ErrorCode::argument_invalid, "format", "found \"{}\"; allowed are {}, gguf and onnx", asked,
                    checkpoint_format_names());
  return make_checkpoint_plan(model, parsed.config, *format, options, diagnostics);
}

}  // namespace

Result<Plan> make_plan(const ModelIndex& model, std::string_view config_text, const PlanOptions& options,
                       List<Diagnostic>& diagnostics) {
  auto plan = make_any_plan(model, config_text, options, diagnostics);
  if (!plan || plan->format == "onnx" || plan->quantized_count == 0) return plan;
  const Coverage coverage = coverage_of(*plan, model);
  if (!coverage.is_low()) return plan;
  List<Diagnostic> all = {low_coverage_warning(coverage)};
  for (Diagnostic& d : diagnostics) all.push_back(std::move(d));
  diagnostics = std::move(all);
  return plan;
}

}  // namespace wasmquant
