#include "pipeline/plan/plan.h"

#include "config/config_api.h"
#include "config/dialects/dialects.h"
#include "pipeline/calibration/algorithm_list.h"
#include "pipeline/plan/planners.h"

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

// What is asked for by name, or follows from model and config.
std::string format_of(const ModelIndex& model, bool is_recipe, const std::string& asked) {
  if (!asked.empty()) return asked;
  if (model.onnx() != nullptr) return "onnx";
  return is_recipe || model.is_gguf() ? "gguf" : "compressed-tensors";
}

}  // namespace

void PlannedFile::add_literal(uint64_t offset, std::string_view text) {
  if (literals.empty() || literals.back().offset + literals.back().bytes != offset)
    literals.push_back({offset, prefix.size(), 0});
  literals.back().bytes += text.size();
  prefix += text;
}

Result<Plan> make_plan(const ModelIndex& model, std::string_view config_text, const PlanOptions& options,
                       List<Diagnostic>& diagnostics) {
  const std::string_view given = options.format.empty() && model.is_gguf() ? "gguf" : std::string_view(options.format);
  TRY(parsed, config::parse_for_format(config_text, given, &diagnostics));
  const Config& config = parsed.config;
  const bool is_recipe = config.dialect == Dialect::gguf, is_onnx_model = model.onnx() != nullptr;
  if (is_onnx_model && is_recipe)
    return error_at(ErrorCode::format_unsupported, "/recipe",
                    "{} is a recipe for GGUF files, and this is an ONNX model: take a preset like int4_wo_32, int8 or "
                    "int8_dynamic",
                    config.source["recipe"].as_string());
  const std::string format = format_of(model, is_recipe, options.format);
  const bool is_onnx = format == "onnx", is_gguf = format == "gguf";
  if (is_onnx_model != is_onnx)
    return error_at(ErrorCode::format_unsupported, "format",
                    "ONNX files are made of ONNX models, and nothing else is: the model is {}, the format {}",
                    model.format(), format);
  if (options.gguf.shard_bytes != 0 && !is_gguf)
    return error_at(ErrorCode::format_unsupported, "shardBytes",
                    "only gguf is cut into parts of a given size; {} has the files of its source", format);
  if (is_onnx) return make_onnx_plan(model, config, options, diagnostics);
  warn_of_norms(config, diagnostics);
  if (is_gguf && is_recipe) return make_gguf_plan(model, config, options, diagnostics);
  if (is_gguf)
    return error_at(
        ErrorCode::format_unsupported, "format",
        "GGUF holds llama.cpp's types, which round by themselves: take a preset like q4_k_m or q8_0, or a "
        "config with \"dialect\": \"gguf\", which may list rotation, cle, smooth and awq; and calibration or an "
        "imatrix for importance. What gptq makes can be written as fake-quantized, and a GGUF file be made of that");
  if (is_recipe)
    return error_at(ErrorCode::format_unsupported, "format", "{} is a recipe for GGUF files; {} cannot hold it",
                    config.source["recipe"].as_string(), format);
  if (model.is_gguf())
    return error_at(ErrorCode::format_unsupported, "format",
                    "a GGUF model can be written as gguf alone: {} keeps names and parts that GGUF files lack", format);
  const CheckpointFormat* checkpoint = checkpoint_format_named(format);
  if (checkpoint == nullptr || checkpoint->is_read_only())
    return error_at(ErrorCode::argument_invalid, "format", "found \"{}\"; allowed are {}, gguf and onnx", format,
                    checkpoint_format_names());
  return make_checkpoint_plan(model, config, *checkpoint, options, diagnostics);
}

}  // namespace wasmquant
