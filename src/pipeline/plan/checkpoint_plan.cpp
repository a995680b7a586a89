#include "pipeline/plan/checkpoint_plan.h"

#include <algorithm>

#include "config/match/layer_type.h"
#include "config/resolve.h"
#include "core/list.h"
#include "families/default_exclusions.h"
#include "families/loader_names.h"
#include "pipeline/calibration/algorithm_list.h"
#include "pipeline/model_index/expert_tensors.h"
#include "pipeline/plan/file_layout.h"
#include "pipeline/plan/group_size_fallback.h"
#include "pipeline/plan/static_activation_plan.h"
#include "pipeline/plan/untied_head.h"
#include "pipeline/task/tensor_scales.h"

namespace wasmquant {
namespace {

// Whole models are cast tensor by tensor, as they lie.
bool only_casts(const Config& config) {
  const auto is_cast = [](const LayerConfig& layer) {
    return layer.weight.empty() || info_of(layer.weight.front().dtype).is_plain_cast();
  };
  bool all = is_cast(config.global);
  for (const auto& [name, layer] : config.layer) all &= is_cast(layer);
  for (const auto& [type, layer] : config.layer_type) all &= is_cast(layer);
  return all;
}

class Planner {
 public:
  Planner(const ModelIndex& model, const families::ModelFamily& family, ExpertStorage experts, const Config& config,
          const CheckpointFormat& format, const PlanOptions& options, List<Diagnostic>& diagnostics)
      : model_(model),
        family_(family),
        experts_(experts),
        config_(config),
        format_(format),
        options_(options),
        diagnostics_(diagnostics),
        exclusions_(family, {!options.include_towers, experts == ExpertStorage::left, !format.holds_input_major()}),
        resolver_(config, &exclusions_),
        asked_(asked_algorithms(config)) {}

  Result<Plan> run() {
    plan_.format = format_.name();
    const List<ModelTensor>& tensors = model_.tensors();
    for (uint32_t i = 0; i < tensors.size(); ++i) add_tensor(i, tensors[i]);
    add_untied_head();
    if (Status done = add_online_rotation(); !done) fail(std::move(done.error()));
    for (Diagnostic& d : resolver_.unused_patterns()) diagnostics_.push_back(std::move(d));
    if (inputs_left_out_)
      diagnostics_.push_back(
          {Severity::warning, "not-applied", text_of("{}/input_tensors", config_.where),
           text_of("{} cannot describe these dynamic inputs: the runtime will not quantize them", format_.name()),
           "write quark, or take int8 or fp8_e4m3 per tensor or per token"});
    warn_of_static();
    warn_of_tied_output();
    if (requantized_ != 0) diagnostics_.push_back(requantized_warning(requantized_));
    if (widened_ != 0)
      diagnostics_.push_back({Severity::note, "dtype-widened", "",
                              text_of("{} tensors are floats of 8 or 4 bits: their new values are written as BF16, "
                                      "rounded to it",
                                      widened_),
                              ""});
    check_something_is_quantized();
    if (failures_ != 0) {
      if (failures_ > 1) first_failure_.message += text_of(" (and {} more tensors, see diagnostics)", failures_ - 1);
      return first_failure_;
    }
    TRY_VOID(format_.check(outcomes_));
    TRY_VOID(lay_out_files());
    write_quantization_config();
    return std::move(plan_);
  }

 private:
  void add_untied_head() {
    const auto head = untied_head(model_, config_);
    if (!head) return;
    ModelTensor tensor = model_.tensors()[head->embedding];
    tensor.layer = head->layer;
    tensor.layer_type = "Linear";
    tensor.stored.name = head->layer + ".weight";
    add_tensor(head->embedding, tensor);
    plan_.tensors.back().name = tensor.stored.name;
    plan_.bytes_before -= plan_.tensors.back().task.source_bytes;
    plan_.config_changes.set("tie_word_embeddings", false);
    diagnostics_.push_back(
        {Severity::note, "head-untied", tensor.stored.name,
         "the head of this model is its embedding, and the rotation changes the two differently: the "
         "output stores the head separately, and its config.json says so",
         "set r1 to false to keep them one"});
  }

  // R4's other half is the runtime's.
  Status add_online_rotation() {
    const AskedAlgorithm* const rotation = find_online_rotation(asked_);
    if (rotation == nullptr) return {};
    const std::string where = text_of("{}/r4", rotation->where);
    const std::string_view format = format_.name();
    if (format != "quark" && format != "fake-quantized")
      return error_at(ErrorCode::format_unsupported, where,
                      "the runtime has to rotate the input of down_proj, and {} cannot say so; write quark or "
                      "fake-quantized, or set it to false",
                      format);
    json::Value layers;
    layers.set("mlp.down_proj", "hadamard");
    plan_.config_changes.set("input_rotation", std::move(layers));
    diagnostics_.push_back({Severity::warning, "online-rotation", where,
                            "down_proj expects inputs multiplied by a Hadamard matrix. Runtimes with Quark's R4 do "
                            "that where the matrix is "
                            "theirs, evaluate and generate here do; any other runtime gives wrong output",
                            "set r4 to false for files that load anywhere"});
    return {};
  }

  void add_tensor(uint32_t index, const ModelTensor& tensor) {
    const StoredTensor& stored = tensor.stored;
    PlannedTensor& planned = plan_.tensors.emplace_back();
    planned.tensor = index;
    planned.weight.layer = tensor.layer;
    planned.weight.layer_type = resolver_.type_of(tensor.layer, tensor.layer_type);
    planned.weight.shape = stored.shape;
    if (!stored.name.ends_with(".weight")) planned.weight.tensor = stored.name;
    planned.weight.source = stored.dtype;
    if (config_.export_info) planned.weight.pack_method = config_.export_info->pack_method;
    planned.task.name = stored.name;
    planned.task.source = {tensor.file, stored.begin};
    planned.task.source_bytes = stored.end - stored.begin;
    planned.task.source_pitch = tensor.pitch;
    planned.task.quantized = tensor.quantized;
    planned.task.non_finite = config_.non_finite;

    Resolved resolved =
        resolver_.resolve(stored.name, tensor.layer_type, stored.shape, is_quantizable(stored.dtype, stored.shape));
    planned.reason = std::move(resolved.reason);
    left_by_default_ |= planned.reason.rule == Rule::default_exclusion;
    if (!resolved.weight.empty()) describe_storage(tensor, planned, resolved.weight);
    if (!resolved.weight.empty() && planned.task.source_bytes != 0) {
      if (Status done = lay_out(tensor, planned, resolved.weight); !done) {
        fail(std::move(done.error()));
        return;
      }
    }
    if (!planned.task.layout.components.empty()) {
      widen_output(planned.task.layout);
    } else if (tensor.quantized || tensor.pitch != 0 || tensor.is_input_major || needs_bfloat16(tensor)) {
      if (Status done = keep_values(tensor, planned); !done) {
        fail(std::move(done.error()));
        return;
      }
    } else {
      planned.task.is_copy = true;
      planned.task.layout.components.push_back(
          {Role::codes, stored.name, stored.dtype, stored.shape, planned.task.source_bytes});
    }
    requantized_ += planned.task.quantized != nullptr || (!planned.task.is_copy && small_float_of(stored.dtype));
    set_tiles(planned.task, options_.tile_bytes);
    if (Status fits = check_memory(planned.task); !fits) {
      fail(std::move(fits.error()));
      return;
    }
    const bool is_layer = layer_name_of(stored.name).role == TensorRole::weight || tensor.layer_type == kExperts;
    if (is_layer && is_quantizable_type(planned.weight.layer_type)) {
      LayerOutcome outcome{
          tensor.layer, planned.weight.layer_type, {}, {}, {}, families::loader_name(family_, tensor.layer)};
      if (outcome.loader_layer == outcome.layer) outcome.loader_layer.clear();
      if (!planned.is_left) outcome.weight = stages_of(planned.task);
      check_loader(outcome);
      add_activations(planned, outcome);
      outcomes_.push_back(std::move(outcome));
    }
    count(planned);
  }

  // Leaves the layout empty where the format has no place for this layer, and only a preset's global spec covers it.
  Status lay_out(const ModelTensor& tensor, PlannedTensor& planned, const Stages& stages) {
    auto layout = fitted_layout(planned, stages);
    if (layout) {
      planned.task.layout = std::move(*layout);
      planned.task.layout.source_transposed = tensor.is_input_major;
      return {};
    }
    if (layout.error().code != ErrorCode::format_unsupported || !config_.default_exclusions ||
        planned.reason.rule != Rule::global)
      return std::move(layout.error());
    planned.reason = {Rule::not_quantizable, "", layout.error().message};
    if (!first_unfit_) first_unfit_ = std::move(layout.error());
    return {};
  }

  // How a weight that the format stores as it lies in the model lies there.
  void describe_storage(const ModelTensor& tensor, PlannedTensor& planned, Stages& stages) {
    const bool is_cast = info_of(stages.front().dtype).is_plain_cast();
    WeightDescription& weight = planned.weight;
    if (weight.layer_type == kConv1D) {
      if (!is_cast && !format_.holds_input_major())
        fail(error_at(ErrorCode::format_unsupported, planned.task.name,
                      "is stored as [inputs, outputs] (Conv1D), which {} cannot hold. Exclude the layer, or write "
                      "fake-quantized",
                      format_.name()));
      weight.is_input_major = true;
    }
    if (weight.layer_type != kExperts) return;
    const auto experts = experts_of(model_, tensor, family_);
    if (!is_cast && (!experts || experts_ != ExpertStorage::as_stored)) {
      stages = Stages();
      planned.reason = {Rule::not_quantizable, "",
                        experts ? text_of("{} does not hold the experts of this family", format_.name())
                                : std::string("the axes of these experts cannot be told from shapes and config.json")};
      return;
    }
    weight.experts = weight.shape[0];
    weight.is_input_major = experts && experts->is_input_major;
  }

  // What lies beside weights that load as bfloat16 is cast to it by transformers, but for tensors that it converts.
  bool needs_bfloat16(const ModelTensor& tensor) const {
    if (tensor.stored.dtype != StorageDtype::F32 && tensor.stored.dtype != StorageDtype::F16) return false;
    const Stages& weight = config_.global.weight;
    return !weight.empty() && format_.loads_as_bfloat16(weight) && families::is_converted(family_, tensor.layer);
  }

  // Values as they are, where the bytes cannot go over: codes of another format, parts of tensors that lie transposed.
  Status keep_values(const ModelTensor& tensor, PlannedTensor& planned) {
    Stages plain(1);
    plain.front().dtype = Dtype::bfloat16;
    TRY(layout, format_.layout(planned.weight, plain));
    planned.task.layout = std::move(layout);
    planned.task.layout.source_transposed = tensor.is_input_major;
    planned.is_left = true;
    if (tensor.quantized) {
      planned.reason.text += "; its decoded values are written as BF16";
      ++decoded_;
    } else if (needs_bfloat16(tensor)) {
      planned.reason.text += "; written as BF16, in which the loader computes";
    } else {
      set_dtype(planned.task.layout.components.front(), tensor.stored.dtype);
    }
    return {};
  }

  // A warning for configs that ask for it in so many words; presets are to load.
  void check_loader(const LayerOutcome& layer) {
    if (layer.weight.empty() || !format_.hides_weight(layer.weight) ||
        !families::needs_plain_weight(family_, layer.layer))
      return;
    if (unloadable_++ != 0) return;
    const std::string message = text_of(
        "transformers cannot load packed weights of this family ({}): its class reads a tensor called weight "
        "while it loads, which this dtype has not",
        family_.model_type);
    constexpr const char* kHint = "take int8 or fp8_per_channel, which load, or write quark, gptq or fake-quantized";
    if (config_.default_exclusions)
      fail(error_at(ErrorCode::format_unsupported, layer.layer, "{}; {}", message, std::string(kHint)));
    else
      diagnostics_.push_back({Severity::warning, "loader-limit", layer.layer, message, kHint});
  }

  // No success that did nothing.
  void check_something_is_quantized() {
    if (failures_ != 0 || (!left_by_default_ && !first_unfit_)) return;
    for (const PlannedTensor& planned : plan_.tensors)
      if (!planned.task.is_copy && !planned.is_left) return;
    if (first_unfit_) {
      fail(std::move(*first_unfit_));
      return;
    }
    for (const PlannedTensor& planned : plan_.tensors) {
      if (planned.reason.rule != Rule::default_exclusion) continue;
      fail(error_at(ErrorCode::format_unsupported, planned.task.name,
                    "nothing of this model would be quantized as {}: this weight is left by {}. Name it in the config, "
                    "or write another format",
                    format_.name(), planned.reason.text));
      return;
    }
  }

  void add_activations(PlannedTensor& planned, LayerOutcome& outcome) {
    if (planned.task.is_copy || planned.is_left) return;
    const LayerConfig config = resolver_.layer_config(planned.weight.layer, planned.weight.layer_type);
    LayerActivations made = plan_activations(planned, config, format_, options_);
    for (Error& error : made.errors) fail(std::move(error));
    outcome.inputs = std::move(made.inputs);
    outcome.outputs = std::move(made.outputs);
    planned.activations = std::move(made.tensors);
    planned.task.importance = std::move(made.importance);
    for (ActivationRequest& request : made.requests) plan_.requests.push_back(std::move(request));
    inputs_left_out_ |= made.inputs_left_out;
    static_left_out_ |= made.static_left_out;
  }

  void warn_of_static() {
    if (static_left_out_)
      diagnostics_.push_back({Severity::warning, "not-applied", config_.where,
                              "static inputs and outputs are left out: their scales come from calibration, and only "
                              "quark and compressed-tensors hold them",
                              "give calibration, or set is_dynamic to true"});
  }

  static Stages stages_of(const TensorTask& task) { return task.is_copy ? Stages() : task.layout.all_stages(); }

  Result<WeightLayout> fitted_layout(PlannedTensor& planned, const Stages& stages) {
    auto layout = format_.layout(planned.weight, stages);
    if (layout || layout.error().code != ErrorCode::group_size_invalid ||
        config_.indivisible_groups == IndivisibleGroups::error || stages.size() > 1)
      return layout;
    const QuantizationSpec& spec = stages.front();
    const std::vector<uint64_t>& shape = planned.weight.shape;
    auto axis =
        static_cast<size_t>(spec.ch_axis < 0 ? spec.ch_axis + static_cast<int64_t>(shape.size()) : spec.ch_axis);
    if (planned.weight.is_input_major) axis = shape.size() - 2;
    return format_.layout(planned.weight,
                          {fall_back(spec, shape[axis], planned.task.name, planned.reason, diagnostics_)});
  }

  // Values of small floats, once rounded to another grid, are none of theirs: they are written as BF16.
  void widen_output(WeightLayout& layout) {
    if (layout.codes != CodeStorage::source_values || !small_float_of(layout.source)) return;
    set_dtype(layout.components.front(), StorageDtype::BF16);
    ++widened_;
  }

  // One tile and the scales that outlive it must fit a 32-bit memory beside everything else.
  static Status check_memory(const TensorTask& task) {
    if (task.is_copy) return {};
    const WeightLayout& layout = task.layout;
    const uint64_t tile_elements = std::min(task.tile_lines, layout.lines()) * layout.line_elements();
    const uint64_t kept_scales = TensorScales::needed(layout) ? layout.granularity.scale_count() : 0;
    TRY_VOID(TensorScales::check(layout, task.name));
    if (tile_elements <= kMaxTileElements && kept_scales <= kMaxTileElements) return {};
    return error_at(ErrorCode::memory_budget, task.name,
                    "its smallest tile has {} elements and {} scales kept between passes; the limit is {} each. "
                    "Exclude the layer, or give it smaller groups or another scheme",
                    tile_elements, kept_scales, kMaxTileElements);
  }

  void fail(Error error) {
    if (failures_++ == 0) first_failure_ = error;
    diagnostics_.push_back(
        {Severity::error, std::string(name_of(error.code)), std::move(error.where), std::move(error.message), ""});
  }

  void count(PlannedTensor& planned) {
    for (const Component& component : planned.outputs()) planned.bytes_after += component.bytes;
    for (const KnownTensor& known : planned.activations) planned.bytes_after += known.component.bytes;
    plan_.bytes_before += planned.task.source_bytes;
    plan_.bytes_after += planned.bytes_after;
    if (planned.task.is_copy || planned.is_left) return;
    ++plan_.quantized_count;
    plan_.quantized_elements += planned.task.layout.rows * planned.task.layout.columns;
    plan_.quantized_bytes += planned.bytes_after;
  }

  // Weight files of models whose output layer is their embedding have no tensor for it.
  void warn_of_tied_output() {
    const PlannedTensor* embedding = nullptr;
    for (const PlannedTensor& planned : plan_.tensors) {
      const std::string_view layer = planned.weight.layer;
      const std::string_view part = layer.substr(layer.rfind('.') + 1);
      for (const std::string_view head : {"lm_head", "embed_out", "output", "head", "classifier", "score"})
        if (part == head) return;
      for (const std::string_view tokens : {"embed_tokens", "wte", "tok_embeddings", "word_embeddings"})
        if (part == tokens && !planned.task.is_copy) embedding = &planned;
    }
    if (embedding == nullptr) return;
    diagnostics_.push_back(
        {Severity::warning, "tied-weights", embedding->task.name,
         "this model has no separate output layer, so its embedding is probably also its output layer: "
         "quantizing it rounds the logits",
         text_of("exclude {q}, or give it more bits", embedding->weight.layer)});
  }

  Status lay_out_files() {
    const bool one_file = model_.is_npy();  // arrays have a file each, or are parts of one
    List<List<PlannedTensor*>> by_file(one_file ? 1 : model_.files().size());
    for (PlannedTensor& planned : plan_.tensors)
      by_file[one_file ? 0 : model_.tensors()[planned.tensor].file].push_back(&planned);
    List<std::pair<std::string, std::string>> map;
    for (uint32_t f = 0; f < by_file.size(); ++f) {
      PlannedFile file{one_file ? "model.safetensors" : model_.files()[f].name, {}, 0};
      TRY_VOID(lay_out_file(file, f, by_file[f], metadata_of(f)));
      for (const PlannedTensor* planned : by_file[f])
        for (const Component& component : planned->outputs()) map.emplace_back(component.name, file.name);
      for (const PlannedTensor* planned : by_file[f])
        for (const KnownTensor& known : planned->activations) map.emplace_back(known.component.name, file.name);
      plan_.files.push_back(std::move(file));
    }
    if (model_.is_sharded() || by_file.size() > 1)
      plan_.shard_map = safetensors::write_shard_map(map, plan_.bytes_after, model_.shard_map_text());
    return {};
  }

  // That of its source, and the version.
  List<std::pair<std::string, std::string>> metadata_of(uint32_t file) const {
    List<std::pair<std::string, std::string>> metadata;
    for (const auto& [key, value] : model_.metadata(file))
      if (key != kVersionKey) metadata.emplace_back(key, value);
    if (!options_.version.empty()) metadata.emplace_back(kVersionKey, options_.version);
    return metadata;
  }

  void write_quantization_config() {
    const bool any = std::any_of(outcomes_.begin(), outcomes_.end(),
                                 [](const LayerOutcome& layer) { return !layer.weight.empty(); });
    if (any) plan_.quantization_config = format_.quantization_config(config_, outcomes_, family_);
    const AskedAlgorithm* const rotation = find_online_rotation(asked_);
    if (!any || rotation == nullptr || format_.name() != "quark") return;
    json::Array algorithms;
    algorithms.push_back(rotation->value);
    plan_.quantization_config.set("algo_config", std::move(algorithms));
  }

  const ModelIndex& model_;
  const families::ModelFamily& family_;
  const ExpertStorage experts_;
  const Config& config_;
  const CheckpointFormat& format_;
  const PlanOptions& options_;
  List<Diagnostic>& diagnostics_;
  const families::DefaultExclusions exclusions_;
  Resolver resolver_;
  const List<AskedAlgorithm> asked_;
  Plan plan_;
  List<LayerOutcome> outcomes_;
  bool inputs_left_out_ = false, static_left_out_ = false, left_by_default_ = false;
  uint64_t failures_ = 0, requantized_ = 0, widened_ = 0, decoded_ = 0, unloadable_ = 0;
  Error first_failure_;
  std::optional<Error> first_unfit_;  // of layers that the format has no place for, and that are left
};

}  // namespace

Result<Plan> make_checkpoint_plan(const ModelIndex& model, const Config& config, const CheckpointFormat& format,
                                  const PlanOptions& options, List<Diagnostic>& diagnostics) {
  TRY(family, families::ModelFamily::read(model.companion("config.json")));
  ExpertStorage experts = format.expert_storage(family, options.include_experts);
  if (only_casts(config)) experts = ExpertStorage::as_stored;
  std::unique_ptr<ModelIndex> split = experts == ExpertStorage::per_expert ? split_experts(model, family) : nullptr;
  auto plan = Planner(split ? *split : model, family, experts, config, format, options, diagnostics).run();
  if (plan) plan->model = std::move(split);
  return plan;
}

}  // namespace wasmquant
