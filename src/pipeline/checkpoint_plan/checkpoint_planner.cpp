// The spec and layout of each tensor, remarks about the model as a whole, and files.
#include "pipeline/checkpoint_plan/checkpoint_planner.h"

#include "families/module_path.h"

namespace wasmquant {

void CheckpointPlanner::add_tensors() {
  const List<ModelTensor>& tensors = model_.tensors();
  plan_.tensors.reserve(tensors.size() + 1);
  outcomes_.reserve(tensors.size() + 1);
  for (uint32_t i = 0; i < tensors.size(); ++i) add_tensor(i, tensors[i]);
  const auto head = untied_head(model_, config_);
  if (!head) return;
  ModelTensor tensor = tensors[head->embedding];
  tensor.layer = head->layer;
  tensor.layer_type = "Linear";
  tensor.stored.name = head->layer + ".weight";
  add_tensor(head->embedding, tensor, tensor.stored.name);
  plan_.config_changes.set("tie_word_embeddings", false);
  note("head-untied", tensor.stored.name,
       "this model shares one tensor between head and embedding, and the rotation needs two: the output stores both "
       "and sets tie_word_embeddings to false",
       "set r1 to false to keep them tied");
}

void CheckpointPlanner::add_tensor(uint32_t index, const ModelTensor& tensor, const std::string& own_name) {
  PlannedTensor& planned = begin(index, tensor);
  planned.name = own_name;
  finish(planned, choose(planned, tensor));
}

Status CheckpointPlanner::choose(PlannedTensor& planned, const ModelTensor& tensor) {
  const StoredTensor& stored = tensor.stored;
  TensorTask& task = planned.task;
  planned.weight.layer_type = resolver_.type_of(tensor.layer, tensor.layer_type);
  if (!stored.name.ends_with(".weight")) planned.weight.tensor = stored.name;
  if (config_.export_info) planned.weight.pack_method = config_.export_info->pack_method;
  Resolved resolved =
      resolver_.resolve(stored.name, tensor.layer_type, stored.shape, is_quantizable(stored.dtype, stored.shape));
  resolve_bias(tensor, resolved);
  planned.reason = std::move(resolved.reason);
  if (std::string codes = why_not_values(model_, tensor); !codes.empty() && !tensor.quantized) {
    if (undecoded_.count == 0) undecoded_text_ = codes;
    undecoded_.add(stored.name);
    planned.reason = Reason{Rule::not_quantizable, "", std::move(codes)};
  }
  // Loaders that read a config block have quantized classes only for linear layers: naming the layer would not help.
  const std::string& type = planned.weight.layer_type;
  const bool is_linear = type == "Linear" || type == kExperts || type == kConv1D;
  if (planned.reason->rule == Rule::no_config && !is_linear && format_.traits().needs_config_block)
    planned.reason = Reason{
        Rule::no_config, "",
        text_of("{} stay as they are: {} files hold none that are quantized",
                type == "Embedding" ? std::string("embeddings") : text_of("layers of class {}", type), format_.name())};
  leave_router(planned, resolved.weight);
  if (!resolved.weight.empty() && options_.experts == ExpertChoice::exclude && is_expert(tensor)) {
    resolved.weight = Stages();
    planned.reason = Reason{Rule::excluded, "", experts_.left};
  }
  planned.weight.is_unpacked = needs_bytes(planned.weight, resolved.weight);
  // Stored orders are those of a layer's matrix; its bias has one axis.
  if (layer_name_of(stored.name).role != TensorRole::bias) {
    if (!resolved.weight.empty()) TRY_VOID(describe_storage(tensor, planned, resolved.weight));
    TRY_VOID(describe_groups(planned, resolved.weight));
  }
  if (!resolved.weight.empty() && task.source_bytes != 0) TRY_VOID(lay_out(tensor, planned, resolved.weight));
  if (!task.layout->components.empty()) leave_with_others(planned);
  if (!task.layout->components.empty())
    widen_output(task);
  else if (tensor.quantized || tensor.pitch != 0 || tensor.is_input_major || needs_bfloat16(tensor) ||
           is_cast_along(tensor, *planned.reason))
    TRY_VOID(keep_values(tensor, planned));
  else
    copies_source(planned);
  if (holds_codes(task) || (!task.is_copy && small_float_of(stored.dtype))) requantized_.add(stored.name);
  const bool is_layer = layer_name_of(stored.name).role == TensorRole::weight || tensor.layer_type == kExperts;
  if (is_layer && is_quantizable_type(planned.weight.layer_type)) add_outcome(planned);
  return {};
}

void CheckpointPlanner::resolve_bias(const ModelTensor& tensor, Resolved& resolved) {
  const auto [layer, role] = layer_name_of(tensor.stored.name);
  if (role != TensorRole::bias || !is_quantizable(tensor.stored.dtype, tensor.stored.shape)) return;
  const ModelTensor* const weight = model_.find(text_of("{}.weight", layer));
  Resolved found = weight == nullptr ? Resolved() : resolver_.resolve_bias(layer, weight->layer_type);
  if (found.weight.empty()) return;
  if (format_.traits().holds_biases)
    resolved = std::move(found);
  else
    remarks_.biases.add(tensor.stored.name);
}

void CheckpointPlanner::leave_router(PlannedTensor& planned, Stages& stages) {
  const bool is_named = planned.reason->rule == Rule::layer_name || planned.reason->rule == Rule::layer_glob;
  if (stages.empty() || !runtimes::leaves_routers(format_) || !routes_experts(planned.weight.layer)) return;
  if (is_named) return remarks_.quantized_routers.add(planned.task.name);
  stages = Stages();
  planned.reason = Reason{Rule::not_quantizable, "",
                          "routers: loaders read them as plain parameters; name the layer in layer_quant_config to "
                          "quantize it"};
  remarks_.routers.add(planned.task.name);
}

bool CheckpointPlanner::routes_experts(std::string_view layer) const {
  const std::string_view module = families::routed_module(layer);
  if (module.empty()) return false;
  const std::string inside = text_of("{}.", module), experts = text_of("{}.experts.", module);
  for (const ModelTensor& tensor : model_.tensors()) {
    const std::string& name = tensor.stored.name;
    if (name.starts_with(inside) &&
        (name.starts_with(experts) || families::is_expert_tensor(name, tensor.stored.shape)))
      return true;
  }
  return false;
}

bool CheckpointPlanner::is_expert(const ModelTensor& tensor) {
  return tensor.layer_type == kExperts || families::has_component(tensor.layer, "experts");
}

bool CheckpointPlanner::needs_bytes(const WeightDescription& weight, const Stages& stages) const {
  if (stages.empty()) return false;
  const DtypeInfo& dtype = info_of(stages.front().dtype);
  if (!dtype.is_integer || dtype.bits != 8) return false;
  const transformers::Conversion* const conversion = conversions_.find(weight.layer);
  return transformers::needs_plain_weight(family_, weight.layer) ||
         transformers::needed_plain_weight(family_, weight.layer) ||
         (conversion != nullptr && conversion->kind == transformers::Conversion::Kind::split) ||
         quantizes_inputs(resolver_.layer_config(weight.layer, weight.layer_type).input_tensors, format_, options_);
}

void CheckpointPlanner::leave_with_others(PlannedTensor& planned) {
  const std::string_view reason = joined_.reason_to_leave(planned.weight.layer);
  if (reason.empty() || planned.task.layout->codes == CodeStorage::cast_values) return;
  planned.task.layout = WeightLayout();
  planned.reason = Reason{Rule::not_quantizable, "", std::string(reason)};
  leave(planned, error_at(ErrorCode::format_unsupported, planned.task.name, "{}", reason));
  remarks_.omitted_with_others.add(planned.task.name);
}

bool CheckpointPlanner::needs_bfloat16(const ModelTensor& tensor) const {
  if (tensor.stored.dtype != StorageDtype::F32 && tensor.stored.dtype != StorageDtype::F16) return false;
  const Stages& weight = config_.global.weight;
  return !weight.empty() && loader().loads_as_bfloat16(weight) &&
         (transformers::is_converted(family_, tensor.layer) || conversions_.find(tensor.layer) != nullptr);
}

bool CheckpointPlanner::is_cast_along(const ModelTensor& tensor, const Reason& reason) const {
  const bool is_rest =
      reason.rule == Rule::no_config || reason.rule == Rule::not_quantizable || reason.rule == Rule::not_a_weight;
  const std::string_view name = tensor.stored.name;
  if (!is_rest || config_.whole_cast() == nullptr) return false;
  if (transformers::stays_float32(name) || families::is_cache_scale(name)) return false;
  const StorageDtype stored = tensor.stored.dtype;
  const bool is_half = config_.global.weight.front().dtype == Dtype::float16;
  return stored == StorageDtype::F64 || stored == StorageDtype::F32 ||
         stored == (is_half ? StorageDtype::BF16 : StorageDtype::F16);
}

Status CheckpointPlanner::keep_values(const ModelTensor& tensor, PlannedTensor& planned) {
  const DtypeInfo* const cast = config_.whole_cast();
  Stages plain(1);
  plain.front().dtype = cast == nullptr ? Dtype::bfloat16 : config_.global.weight.front().dtype;
  TRY(layout, format_.layout(planned.weight, plain));
  layout.source_transposed = tensor.is_input_major;
  planned.is_left = true;
  if (cast != nullptr)
    planned.add_reason("; cast with the whole model");
  else if (tensor.quantized && holds_codes(*tensor.quantized))
    planned.add_reason("; its decoded values are written as BF16");
  else if (needs_bfloat16(tensor))
    planned.add_reason("; written as BF16, in which the loader computes");
  else if (tensor.stored.dtype == StorageDtype::F64)
    set_dtype(layout.components.front(), StorageDtype::F32);  // as which it is read
  else
    set_dtype(layout.components.front(), tensor.stored.dtype);
  planned.task.layout = std::move(layout);
  return {};
}

void CheckpointPlanner::widen_output(TensorTask& task) {
  const WeightLayout& given = task.layout;
  if (given.codes != CodeStorage::source_values) return;
  const bool is_small = small_float_of(given.source).has_value(), is_double = given.source == StorageDtype::F64;
  if (!is_small && !is_double) return;
  task.layout.edit([&](WeightLayout& layout) {
    set_dtype(layout.components.front(), is_small ? StorageDtype::BF16 : StorageDtype::F32);
  });
  if (!is_small) return;
  remarks_.promoted.add(task.name);
}

void CheckpointPlanner::add_outcome(PlannedTensor& planned) {
  const WeightDescription& weight = planned.weight;
  LayerPlan outcome{weight.layer, weight.layer_type, {}, {}, {}, transformers::loader_name(family_, weight.layer)};
  if (outcome.loader_layer == outcome.layer) outcome.loader_layer.clear();
  if (const auto stack = loader().stack_of(family_, weight.layer)) outcome.stored_layer = stack->layer;
  outcome.is_unpacked = weight.is_unpacked;
  outcome.is_reordered = weight.is_reordered;
  const Rule rule = planned.reason->rule;
  outcome.is_split_expert = experts_.are_split && families::is_single_expert(weight.layer);
  outcome.is_requested = rule == Rule::excluded || rule == Rule::layer_name || rule == Rule::layer_glob;
  if (weight.shape.size() == 2) outcome.rows = weight.shape[0], outcome.columns = weight.shape[1];
  if (!planned.task.is_copy && !planned.is_left) {
    outcome.weight = planned.task.layout->all_stages();
    check_loader(planned, outcome);
    add_activations(planned, outcome);
  } else if (rule != Rule::excluded && rule != Rule::default_exclusion) {
    const LayerConfig config = resolver_.layer_config(weight.layer, weight.layer_type);
    const bool has_activations = !config.input_tensors.empty() || !config.output_tensors.empty();
    if (config.weight.empty() && has_activations) remarks_.activations_alone.add(weight.layer);
  }
  if (cache_.is_requested()) cache_.add(planned, outcome, resolver_.is_cached(weight.layer), plan_.requests);
  outcomes_.push_back(std::move(outcome));
}

void CheckpointPlanner::check_loader(const PlannedTensor& planned, const LayerPlan& layer) {
  if (unloadable_) return;
  const std::string message = runtimes::plain_weight_limit(format_, layer, family_);
  if (message.empty()) return;
  unloadable_ = true;
  if (config_.default_exclusions)
    fail(planned,
         error_at(ErrorCode::format_unsupported, layer.layer, "{}; {}", message, std::string(kPlainWeightHint)));
  else
    warn("loader-limit", layer.layer, message, kPlainWeightHint);
}

void CheckpointPlanner::add_activations(PlannedTensor& planned, LayerPlan& outcome) {
  LayerConfig config = resolver_.layer_config(planned.weight.layer, planned.weight.layer_type);
  if (cache_.moves_outputs() && resolver_.is_cached(planned.weight.layer)) config.output_tensors = Stages();
  const OmittedActivations made = plan_activations(planned, outcome, config, format_, options_, plan_.requests);
  for (const Error& error : made.errors) fail(planned, error);
  remarks_.inputs_left_out |= made.inputs_left_out;
  if (made.input_groups_left_out) remarks_.input_groups_left_out.add(outcome.layer);
  if (made.static_left_out) remarks_.static_left_out.add(outcome.layer);
}

void CheckpointPlanner::report() {
  report_online_rotation();
  for (const std::string_view head : heads_without_tensor(outcomes_, family_)) resolver_.see_tied(head);
  for (Diagnostic& d : resolver_.unused_patterns()) diagnostics_.push_back(std::move(d));
  const RemarkContext context{config_, format_.name(), has_fallback(), common_group_};
  add_activation_remarks(remarks_, context, diagnostics_);
  if (auto warning = tied_head_warning(plan_)) diagnostics_.push_back(std::move(*warning));
  share_tensor_scales();
  add_weight_remarks(remarks_, context, diagnostics_);
  if (Status found = cache_.check_found(); !found) fail(std::move(found.error()));
  if (auto remark = cache_.remark()) diagnostics_.push_back(std::move(*remark));
  if (!config_.kv_cache.empty() && !config_.kv_cache_group.empty() && !cache_.shares_scales())
    note("no-effect", text_of("{}/kv_cache_group", config_.where), kCacheGroupRemark);
  report_requantized();
  if (undecoded_.count != 0)
    warn("quantized-already", undecoded_.first,
         text_of("is the first of {} tensors that stay as they are; {}", undecoded_.count, undecoded_text_),
         "start from the checkpoint that this one was made from");
  if (remarks_.promoted.count != 0)
    note("dtype-promoted", remarks_.promoted.first,
         text_of("is the first of {} tensors in floats of 8 or 4 bits: their new values are written as BF16, rounded "
                 "to it",
                 remarks_.promoted.count));
}

bool CheckpointPlanner::does_nothing() const {
  if (plan_.quantized_count != 0 || !requested_.empty() || !plan_.config_changes.is_null()) return false;
  for (const PlannedTensor& planned : plan_.tensors)
    if (planned.is_left) return false;
  return true;
}

void CheckpointPlanner::share_tensor_scales() {
  List<LayerTask> weights;
  for (PlannedTensor& planned : plan_.tensors)
    if (!planned.task.is_copy && !planned.is_left && planned.weight.experts == 0)
      weights.push_back({planned.weight.layer, &planned.task});
  auto shared = share_scales(weights, config_.shared_scale_groups, config_.where, runtimes::joins_layers(format_),
                             options_.tile_bytes);
  if (!shared)
    fail(std::move(shared.error()));
  else if (*shared)
    diagnostics_.push_back(std::move(**shared));
}

void CheckpointPlanner::report_online_rotation() {
  const RequestedAlgorithm* const rotation = find_online_rotation(requested_);
  const bool is_rotated = is_rotated_source(model_);
  if (rotation == nullptr && !is_rotated) return;
  const std::string where = is_rotated ? std::string("/input_rotation") : text_of("{}/r4", rotation->where);
  if (rotation != nullptr && is_rotated)
    return fail(error_at(ErrorCode::format_unsupported, where,
                         "config.json says that the model is rotated already; leave the rotation out"));
  if (!format_.traits().declares_rotation)
    return fail(error_at(ErrorCode::format_unsupported, where, kRotationRefused, format_.name()));
  if (is_rotated) return warn("online-rotation", where, kRotationRemark, "start from the model before it was rotated");
  json::Value layers;
  layers.set("mlp.down_proj", "hadamard");
  plan_.config_changes.set("input_rotation", std::move(layers));
  warn("online-rotation", where, kRotationRemark, "set r4 to false for files that load anywhere");
}

Status CheckpointPlanner::place_files() {
  TRY_VOID(format_.check(outcomes_));
  if (config_.shares_expert_inputs)
    share_expert_inputs(plan_.tensors, [&](const PlannedTensor& planned) {
      const Stages& inputs = resolver_.layer_config(planned.weight.layer, planned.weight.layer_type).input_tensors;
      return !inputs.empty() && inputs.front().symmetric && inputs.front().qscheme == QScheme::per_tensor;
    });
  if (cache_.shares_scales()) share_cache_scales(plan_.tensors, config_.kv_cache_group);
  TRY_VOID(stack_outputs(plan_, family_, loader()));
  TRY_VOID(lay_out_files(plan_, model_, options_.version));
  if (!plan_.stacks.empty()) sort_work(plan_);
  if (const DtypeInfo* const cast = config_.whole_cast(); cast != nullptr) plan_.cast_dtype = cast->name;
  bool is_any = false;
  for (const LayerPlan& layer : outcomes_) is_any |= !layer.weight->empty();
  if (!is_any) return {};
  plan_.quantization_config = format_.quantization_config(config_, outcomes_, family_);
  cache_.describe(plan_.quantization_config);
  const json::Value members = loader().config_members(*model_.config(), plan_.quantization_config);
  for (const auto& [key, value] : members.members()) plan_.config_changes.set(key, json::Value(value));
  const RequestedAlgorithm* const rotation = find_online_rotation(requested_);
  if (rotation == nullptr || plan_.quantization_config.is_null()) return {};
  json::Array algorithms;
  algorithms.push_back(rotation->value);
  plan_.quantization_config.set("algo_config", std::move(algorithms));
  return {};
}

}  // namespace wasmquant
