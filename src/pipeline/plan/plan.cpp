// Plans in the format that is asked for, or the usual one, and remarks on what became of the size.
#include "pipeline/plan/plan.h"

#include <algorithm>

#include "config/given_config.h"
#include "core/json.h"
#include "core/message.h"
#include "gguf_conversion/architectures/family.h"
#include "pipeline/calibration/algorithm_list.h"
#include "pipeline/model_index/class_names.h"
#include "pipeline/model_index/converted_model.h"
#include "pipeline/model_index/source_names.h"
#include "pipeline/plan/coverage.h"
#include "pipeline/plan/output_format.h"
#include "pipeline/plan/output_size.h"
#include "runtimes/llama_cpp/texts.h"

namespace wasmquant {
namespace {

// Weight files other than ONNX do not tell which layer follows a batch norm.
Status refuse_norms(const Config& config) {
  const List<RequestedAlgorithm> asked = requested_algorithms(config);
  const RequestedAlgorithm* const merge = find_merge(asked);
  if (merge == nullptr || merge->is_implied) return {};
  return error_at(ErrorCode::not_implemented, merge->where,
                  "batch norms are folded only in ONNX models; other files do not record the order of the layers. "
                  "Remove the entry");
}

bool has_end_codes(const Config& config) {
  const auto has_any = [](const LayerConfig& layer) {
    return std::any_of(layer.weight.begin(), layer.weight.end(), counts_from_ends);
  };
  const auto is_of = [&](const auto& rule) { return has_any(rule.second); };
  return has_any(config.global) || std::any_of(config.layer.begin(), config.layer.end(), is_of) ||
         std::any_of(config.layer_type.begin(), config.layer_type.end(), is_of);
}

}  // namespace

void PlannedFile::add_literal(uint64_t offset, std::string_view text) {
  if (literals.empty() || literals.back().offset + literals.back().bytes != offset)
    literals.push_back({offset, prefix.size(), 0});
  literals.back().bytes += text.size();
  prefix += text;
}

namespace {

// `chosen` is set to the output format.
Result<Plan> plan_as_asked(const ModelIndex& model, config::GivenConfig& given, const PlanOptions& options,
                           List<Diagnostic>& diagnostics, const OutputFormat*& chosen) {
  const Format& source = model.format();
  TRY_VOID(check_adapter(model));
  const OutputFormat* const asked = output_format_named(options.format);
  if (asked == nullptr && !options.format.empty())
    return error_at(ErrorCode::argument_invalid, "format", "found {q}; choose one of {}", options.format,
                    output_format_names());
  const bool prefers_recipe = asked != nullptr ? asked->takes_recipes : source.has_ggml_names;
  const config::GivenConfig::Parsed& parsed = given.parsed(prefers_recipe);
  diagnostics = parsed.problems;
  if (!parsed.config) return parsed.config.error();
  const Config& config = parsed.config->config;
  TRY_VOID(check_patterns(config, model.tensors().size()));
  warn_of_wrapped_names(model, diagnostics);
  const bool is_recipe = config.dialect == Dialect::gguf;
  if (source.has_graph && is_recipe)
    return error_at(ErrorCode::format_unsupported, "/recipe",
                    "{} is a recipe for GGUF files, and this is an {} model: use a preset like int4_wo_32, int8 or "
                    "int8_dynamic",
                    config.source["recipe"].as_string(), source.title);
  const OutputFormat& format =
      asked != nullptr ? *asked : usual_output_format(source, is_recipe, has_end_codes(config));
  if (source.has_graph && !format.container->has_graph)
    return error_at(ErrorCode::format_unsupported, "format",
                    "an ONNX model can only be written as ONNX: the model is {}, the format {}", source.name,
                    format.name);
  if (options.gguf.shard_bytes != 0 && !format.splits_by_size)
    return error_at(ErrorCode::format_unsupported, "shardBytes",
                    "only gguf can be split by size; {} keeps the source's files", format.name);
  if (options.experts == ExpertChoice::exclude && format.checkpoint == nullptr)
    return error_at(ErrorCode::format_unsupported, "experts",
                    "this option does not apply to {} files: exclude the layers of their experts by name", format.name);
  if (!source.has_graph) TRY_VOID(refuse_norms(config));
  if (format.takes_recipes && !is_recipe)
    return error_at(ErrorCode::format_unsupported, "format", llama_cpp::kTypesOfItsOwn, names_with_blocks());
  if (is_recipe && !format.takes_recipes)
    return error_at(ErrorCode::format_unsupported, "format", "{} is a recipe for GGUF files; {} cannot store it",
                    config.source["recipe"].as_string(), format.name);
  if (!format.takes(source))
    return error_at(ErrorCode::format_unsupported, "format",
                    "a {} model can only be written as {}: {} needs names and metadata that {} files do not have",
                    source.title, usual_output_format(source, true).name, format.name, source.title);
  chosen = &format;
  TRY(plan, format.plan(model, config, format, options, diagnostics));
  TRY_VOID(check_class_names(model, diagnostics));
  return std::move(plan);
}

// The best preset whose files in this format are smaller than the model.
SizedPreset smaller_preset(const ModelIndex& model, const OutputFormat& format, const PlanOptions& options) {
  PlanOptions same = options;
  same.format = format.name;
  for (const std::string_view preset : shrinking_presets(format.takes_recipes)) {
    List<Diagnostic> ignored;
    const OutputFormat* chosen = nullptr;
    config::GivenConfig smaller(preset);
    const auto plan = plan_as_asked(model, smaller, same, ignored, chosen);
    if (plan && plan->quantized_count != 0 && plan->file_bytes() < model.file_bytes())
      return {preset, plan->file_bytes()};
  }
  return {};
}

// Loaders of checkpoints read no quantized embeddings, which may be half of a small model; llama.cpp does.
void say_who_shrinks_embeddings(const ModelIndex& model, const Plan& plan, const OutputFormat& format,
                                List<Diagnostic>& diagnostics) {
  const uint64_t bytes = plan.file_bytes(), before = model.file_bytes();
  if (format.takes_recipes || model.format().has_graph || plan.quantized_count == 0) return;
  const PlannedTensor* largest = nullptr;
  uint64_t kept = 0;
  for (const PlannedTensor& tensor : plan.tensors) {
    if (tensor.weight.layer_type != "Embedding" || (!tensor.task.is_copy && !tensor.is_left)) continue;
    kept += tensor.bytes_after;
    if (largest == nullptr || tensor.bytes_after > largest->bytes_after) largest = &tensor;
  }
  if (largest == nullptr) return;
  const auto& config = model.config();
  if (!config || config->is_null() || conversion::family_of(*config) == nullptr) return;
  const std::string hint = text_of(llama_cpp::kShrinksEmbeddings, format.name);
  const auto low = std::find_if(diagnostics.begin(), diagnostics.end(),
                                [](const Diagnostic& d) { return d.code == "low-coverage"; });
  if (low != diagnostics.end()) {
    const bool is_of_embeddings =
        std::any_of(plan.tensors.begin(), plan.tensors.end(), [&](const PlannedTensor& tensor) {
          return tensor.task.name == low->where && tensor.weight.layer_type == "Embedding";
        });
    if (low->hint.empty() && is_of_embeddings) low->hint = hint;
  } else if (bytes > before / 2 && kept > bytes / 2) {
    diagnostics.push_back({Severity::note, "embeddings-large", largest->task.name,
                           text_of("{} of the file are embeddings, so it still has {} of the model's bytes",
                                   percent(kept, bytes), percent(bytes, before)),
                           hint});
  }
}

// Formats other than GGUF copy the files of sentence-transformers' modules, and do not read them.
void check_modules(const ModelIndex& model, const OutputFormat& format, List<Diagnostic>& diagnostics) {
  if (format.takes_recipes) return;  // an error there
  const auto modules = sentence_modules_of(model);
  if (modules) return;
  diagnostics.insert(0,
                     Diagnostic(Severity::warning, modules.error().code, modules.error().where, modules.error().message,
                                "correct the file: without it no module of sentence-transformers is found or copied"));
}

}  // namespace

Result<Plan> make_plan(const ModelIndex& model, config::GivenConfig& config, const PlanOptions& options,
                       List<Diagnostic>& diagnostics) {
  const OutputFormat* format = nullptr;
  TRY(plan, plan_as_asked(model, config, options, diagnostics, format));
  const uint64_t bytes = plan.file_bytes(), before = model.file_bytes();
  const auto is_error = [](const Diagnostic& d) { return d.severity == Severity::error; };
  if (is_larger(bytes, before) && std::none_of(diagnostics.begin(), diagnostics.end(), is_error))
    diagnostics.insert(0, larger_output_warning(model, bytes, format->name, smaller_preset(model, *format, options)));
  say_who_shrinks_embeddings(model, plan, *format, diagnostics);
  check_modules(model, *format, diagnostics);
  return std::move(plan);
}

Result<Plan> make_plan(const ModelIndex& model, std::string_view config, const PlanOptions& options,
                       List<Diagnostic>& diagnostics) {
  config::GivenConfig given(config);
  return make_plan(model, given, options, diagnostics);
}

}  // namespace wasmquant
