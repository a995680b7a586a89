// Rounds of planning a checkpoint: one ends in another if layers need a smaller common group, if a loader joins layers of several
// schemes, or if experts are better left; the last one has remarks about loaders.
#include "families/module_path.h"
#include "pipeline/checkpoint_plan/checkpoint_planner.h"
#include "pipeline/plan/output_format.h"

namespace wasmquant {
namespace {

bool has_quantized_experts(const List<LayerPlan>& layers) {
  return std::any_of(layers.begin(), layers.end(),
                     [](const LayerPlan& layer) { return layer.is_split_expert && !keeps_weight(layer); });
}

// Whether a rule of the config names an expert.
bool is_expert_requested(const List<LayerPlan>& layers) {
  return std::any_of(layers.begin(), layers.end(), [](const LayerPlan& layer) {
    return layer.is_requested && families::is_single_expert(layer.layer);
  });
}

// The first layer of a source that already has a tensor for each expert; empty if it has none.
std::string_view first_single_expert(const ModelIndex& model) {
  for (const ModelTensor& tensor : model.tensors())
    if (families::is_single_expert(tensor.layer)) return tensor.layer;
  return {};
}

Diagnostic diagnostic_of(const runtimes::LoaderLimit& limit, Severity severity) {
  return Diagnostic(severity, "loader-limit", limit.layer.empty() ? std::string("model") : limit.layer, limit.reason,
                    (limit.is_of_experts ? "leave all experts (--exclude-experts); or " : "") + limit.hint);
}

struct Round {
  const ModelIndex& model;
  const families::ModelFamily& family;
  const CheckpointFormat& format;
  const List<LayerPlan>& layers;
};

// Why the experts that were tried are better left, with a hint; nullopt if they are not.
std::optional<std::pair<std::string, std::string>> reason_to_leave_experts(
    const Round& round, const std::optional<runtimes::LoaderLimit>& limit, bool is_split, bool is_preset,
    bool is_included) {
  if (is_split && !runtimes::loader_of(round.format).needs_single_experts(round.family) &&
      !has_quantized_experts(round.layers))
    return std::pair<std::string, std::string>("none of the experts would be quantized", "");
  if (limit && limit->is_of_experts && is_preset && !is_included && !is_expert_requested(round.layers))
    return std::pair(limit->reason, limit->hint);
  return std::nullopt;
}

// What the loader of the format needs, if nothing keeps it from the file.
void add_loader_remarks(const Round& round, List<Diagnostic>& diagnostics) {
  if (const std::string_view expert = first_single_expert(round.model); !expert.empty())
    if (const auto limit = runtimes::single_experts_limit(round.format, round.family, expert))
      diagnostics.push_back(diagnostic_of(*limit, Severity::warning));
  runtimes::add_needs(round.format, round.layers, round.family, diagnostics);
}

// Runtimes read Mistral's and Meta's own layout by its params.json; a config.json next to it would name no class.
Status check_folder(const ModelIndex& model, const CheckpointFormat& format) {
  const bool is_own_layout = model.sibling_file("config.json").empty() && !model.sibling_file("params.json").empty();
  if (!is_own_layout || format.name() == kPlainFormat) return {};
  return error_at(ErrorCode::format_unsupported, "params.json", runtimes::kNeedsConfig, format.name());
}

}  // namespace

Result<Plan> make_checkpoint_plan(const ModelIndex& model, const Config& config, const OutputFormat& output,
                                  const PlanOptions& options, List<Diagnostic>& diagnostics) {
  const CheckpointFormat& format = *output.checkpoint;
  TRY_VOID(check_folder(model, format));
  const Result<json::Value>& model_config = model.config();
  if (!model_config) return model_config.error();
  const auto family = families::ModelFamily::read(*model_config);
  TRY(experts, choose_experts(model, family, config, format, options));
  std::unique_ptr<ModelIndex> split =
      experts.storage == ExpertStorage::per_expert ? split_experts(model, family) : nullptr;
  experts.are_split = split != nullptr;
  FusedLayerSchemes joined(config.default_exclusions);
  int64_t common_group = 0;
  for (const size_t remarks = diagnostics.size();;) {
    CheckpointPlanner planner(split ? *split : model, family, experts, config, format, options, joined, common_group,
                              diagnostics);
    auto plan = planner.run();
    if (planner.smaller_group() != 0) {
      common_group = planner.smaller_group();
      diagnostics.resize(remarks);
      continue;
    }
    if (runtimes::joins_layers(format) && joined.update(planner.outcomes())) {
      diagnostics.resize(remarks);
      continue;
    }
    const Round round{model, family, format, planner.outcomes()};
    const auto limit = plan && plan->quantized_count != 0
                           ? runtimes::loader_of(format).limit(planner.outcomes(), family)
                           : std::nullopt;
    const bool is_preset = config.default_exclusions, is_included = options.experts == ExpertChoice::include;
    if (const auto reason = reason_to_leave_experts(round, limit, split != nullptr, is_preset, is_included);
        reason && experts.left.empty()) {
      experts.leave(reason->first, reason->second);
      split.reset();
      diagnostics.resize(remarks);
      continue;
    }
    if (limit && limit->stops_presets && is_preset && !(limit->is_of_experts && is_included)) {
      diagnostics.push_back(diagnostic_of(*limit, Severity::error));
      return error_at(ErrorCode::format_unsupported, diagnostics.back().where, "{}; {}", limit->reason,
                      diagnostics.back().hint);
    }
    if (limit) diagnostics.push_back(diagnostic_of(*limit, Severity::warning));
    if (plan && !limit) add_loader_remarks(round, diagnostics);
    if (plan && joined.warning()) diagnostics.push_back(*joined.warning());
    if (plan) plan->model = std::move(split);
    return plan;
  }
}

}  // namespace wasmquant
