// Plans a checkpoint in safetensors: the spec and layout of each tensor, then rules between layers that loaders have,
// then files.
#include "checkpoint/fused_layer_schemes.h"
#include "config/match/layer_type.h"
#include "config/resolve.h"
#include "core/list.h"
#include "families/conversions.h"
#include "families/default_exclusions.h"
#include "families/expert_weights.h"
#include "families/joined_layers.h"
#include "families/loader_names.h"
#include "families/module_path.h"
#include "pipeline/checkpoint_plan/cache_plan.h"
#include "pipeline/checkpoint_plan/expert_choice.h"
#include "pipeline/checkpoint_plan/file_layout.h"
#include "pipeline/checkpoint_plan/static_activation_plan.h"
#include "pipeline/model_index/expert_tensors.h"
#include "pipeline/plan/output_format.h"
#include "pipeline/plan/output_planner.h"
#include "pipeline/plan/tied_head.h"
#include "pipeline/task/shared_scales.h"

namespace wasmquant {
namespace {

class CheckpointPlanner final : public OutputPlanner {
 public:
  /// Borrows all. `common_group`: the largest group size of weights whose format has one for all; 0: not known to be
  /// smaller than what the config says.
  CheckpointPlanner(const ModelIndex& model, const families::ModelFamily& family, const ExpertPlan& experts,
                    const Config& config, const CheckpointFormat& format, const PlanOptions& options,
                    const FusedLayerSchemes& joined, int64_t common_group, List<Diagnostic>& diagnostics)
      : OutputPlanner(format.name(), model, config, options, diagnostics),
        family_(family),
        experts_(experts),
        conversions_(family),
        format_(format),
        joined_(joined),
        common_group_(common_group),
        exclusions_(family,
                    {!options.include_towers, !format.holds_input_major(), !format.holds_split_layers(), experts.left}),
        resolver_(config, &exclusions_),
        cache_(model, config, format, options) {}

  const List<LayerPlan>& outcomes() const noexcept { return outcomes_; }
  /// Whether rows need smaller groups than `common_group` in a format with one group size: plan again with this one.
  int64_t smaller_group() const noexcept { return smaller_group_; }

 private:
  Status prepare() override { return cache_.check(); }
  bool plans_cache() const override { return format_.text().needs_config_block; }

  void add_tensors() override {
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

  void add_tensor(uint32_t index, const ModelTensor& tensor, const std::string& own_name = {}) {
    PlannedTensor& planned = begin(index, tensor);
    planned.name = own_name;
    finish(planned, choose(planned, tensor));
  }

  // ---- what becomes of a tensor

  Status choose(PlannedTensor& planned, const ModelTensor& tensor) {
    const StoredTensor& stored = tensor.stored;
    TensorTask& task = planned.task;
    planned.weight.layer_type = resolver_.type_of(tensor.layer, tensor.layer_type);
    if (!stored.name.ends_with(".weight")) planned.weight.tensor = stored.name;
    if (config_.export_info) planned.weight.pack_method = config_.export_info->pack_method;
    Resolved resolved =
        resolver_.resolve(stored.name, tensor.layer_type, stored.shape, is_quantizable(stored.dtype, stored.shape));
    resolve_bias(tensor, resolved);
    planned.reason = std::move(resolved.reason);
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
    else if (tensor.quantized || tensor.pitch != 0 || tensor.is_input_major || needs_bfloat16(tensor))
      TRY_VOID(keep_values(tensor, planned));
    else
      copies_source(planned);
    if (task.quantized || (!task.is_copy && small_float_of(stored.dtype))) requantized_.add(stored.name);
    const bool is_layer = layer_name_of(stored.name).role == TensorRole::weight || tensor.layer_type == kExperts;
    if (is_layer && is_quantizable_type(planned.weight.layer_type)) add_outcome(planned);
    return {};
  }

  Status describe_groups(PlannedTensor& planned, const Stages& stages) {
    WeightDescription& weight = planned.weight;
    if (stages.size() != 1 || stages.front().qscheme != QScheme::per_group || weight.layer_type != "Linear") return {};
    const RequestedAlgorithm* const chooser = find_group_chooser(requested_, weight.layer);
    if (chooser == nullptr) return {};
    weight.is_reordered = true;
    if (format_.holds_group_index()) {
      if (format_.joins_layers() && !std::exchange(is_reordered_, true))
        warn("loader-limit", text_of("{}/static_groups", chooser->where),
             "with desc_act, false groups columns out of order, and vLLM no longer loads such files",
             "set it to true for files that load anywhere; gptqmodel loads both");
      return {};
    }
    return error_at(ErrorCode::format_unsupported, text_of("{}/static_groups", chooser->where),
                    "with desc_act, false lets {} choose which columns share a scale, which loaders of {} do not "
                    "support; set it to "
                    "true, or write gptq or fake-quantized",
                    chooser->value["name"].as_string(), format_.name());
  }

  // The spec of a bias is that of its layer's config.
  void resolve_bias(const ModelTensor& tensor, Resolved& resolved) {
    const auto [layer, role] = layer_name_of(tensor.stored.name);
    if (role != TensorRole::bias || !is_quantizable(tensor.stored.dtype, tensor.stored.shape)) return;
    const ModelTensor* const weight = model_.find(text_of("{}.weight", layer));
    Resolved found = weight == nullptr ? Resolved() : resolver_.resolve_bias(layer, weight->layer_type);
    if (found.weight.empty()) return;
    if (format_.holds_biases())
      resolved = std::move(found);
    else
      biases_.add(tensor.stored.name);
  }

  // Quark quantizes modules of linear classes, which routers are not in transformers, and its loader expects their values.
  void leave_router(PlannedTensor& planned, Stages& stages) {
    const bool is_named = planned.reason->rule == Rule::layer_name || planned.reason->rule == Rule::layer_glob;
    if (stages.empty() || !format_.leaves_routers() || !routes_experts(planned.weight.layer)) return;
    if (is_named) return quantized_routers_.add(planned.task.name);
    stages = Stages();
    planned.reason = Reason{Rule::not_quantizable, "",
                            "routers: loaders read them as plain parameters; name the layer in layer_quant_config to "
                            "quantize it"};
    routers_.add(planned.task.name);
  }

  bool routes_experts(std::string_view layer) const {
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

  static bool is_expert(const ModelTensor& tensor) {
    return tensor.layer_type == kExperts || families::has_component(tensor.layer, "experts");
  }

  // vLLM computes with quantized inputs from bytes; some classes of transformers read a tensor called weight, or split it.
  bool needs_bytes(const WeightDescription& weight, const Stages& stages) const {
    if (stages.empty()) return false;
    const DtypeInfo& dtype = info_of(stages.front().dtype);
    if (!dtype.is_integer || dtype.bits != 8) return false;
    const families::Conversion* const conversion = conversions_.find(weight.layer);
    return families::needs_plain_weight(family_, weight.layer) ||
           families::needed_plain_weight(family_, weight.layer) ||
           (conversion != nullptr && conversion->kind == families::Conversion::Kind::split) ||
           quantizes_inputs(resolver_.layer_config(weight.layer, weight.layer_type).input_tensors, format_, options_);
  }

  // Describes a weight whose stored layout the output format keeps.
  Status describe_storage(const ModelTensor& tensor, PlannedTensor& planned, Stages& stages) {
    const bool is_cast = info_of(stages.front().dtype).is_plain_cast();
    WeightDescription& weight = planned.weight;
    if (weight.layer_type == kConv1D) {
      if (!is_cast && !format_.holds_input_major())
        return error_at(ErrorCode::format_unsupported, planned.task.name,
                        "is stored as [inputs, outputs] (Conv1D), which {} cannot hold. Exclude the layer, or write "
                        "fake-quantized",
                        format_.name());
      weight.is_input_major = true;
    }
    if (weight.layer_type != kExperts) return {};
    const auto experts = experts_of(model_, tensor, family_);
    if (!is_cast && (!experts || experts_.storage != ExpertStorage::as_stored)) {
      const Rule rule = planned.reason->rule;
      if (experts && !experts_.left.empty() && (rule == Rule::layer_name || rule == Rule::layer_glob))
        return error_at(ErrorCode::format_unsupported, planned.task.name,
                        "{}. Remove the rule for them from the config, or write fake-quantized or gguf", experts_.left);
      stages = Stages();
      planned.reason =
          Reason{Rule::not_quantizable, "",
                 !experts                ? "shapes and config.json do not say which axis of these experts is which"
                 : experts_.left.empty() ? text_of("{} does not hold the experts of this family", format_.name())
                                         : experts_.left};
      return {};
    }
    weight.experts = weight.shape[0];
    weight.is_input_major = experts && experts->is_input_major;
    return {};
  }

  // Leaves the layout empty if the format does not support this layer and only a preset's global spec covers it.
  Status lay_out(const ModelTensor& tensor, PlannedTensor& planned, const Stages& stages) {
    auto layout = format_.layout(planned.weight, stages);
    if (has_fallback() && stages.size() == 1) {
      const QuantizationSpec& spec = stages.front();
      const uint64_t axis = group_axis(planned.weight, spec);
      // Block dtypes have no channels; where the last block of a row may be short, the format says.
      const bool has_blocks = info_of(spec.dtype).is_block();
      const bool fits = layout
                            ? has_blocks || spec.group_size <= 0 || axis % static_cast<uint64_t>(spec.group_size) == 0
                            : layout.error().code != ErrorCode::group_size_invalid;
      const bool shares_size = fits && format_.needs_one_group_size(spec);
      if (shares_size && common_group_ != 0 && spec.group_size > common_group_)
        layout = format_.layout(planned.weight, {with_common_group(spec, planned)});
      else if (!fits)
        layout = lay_out_fitting(spec, axis, planned);
    }
    if (layout && has_short_joined_block(planned.weight, *layout)) {
      Error problem = error_at(ErrorCode::format_unsupported, planned.task.name,
                               "vLLM joins this layer with others, and its {} rows do not fill blocks of {}",
                               planned.weight.shape[0], layout->spec.block_rows);
      if (config_.default_exclusions && planned.reason->rule == Rule::global)
        layout = std::move(problem);
      else if (!std::exchange(has_warned_of_blocks_, true))
        warn("fused-layers", planned.task.name, text_of("vLLM will not load this file: {}", problem.message),
             "use blocks that divide the rows, or exclude the layers that vLLM joins; transformers loads it");
    }
    if (layout) {
      layout->source_transposed = tensor.is_input_major;
      planned.task.layout = std::move(*layout);
      return {};
    }
    Error& error = layout.error();
    if (error.code != ErrorCode::format_unsupported || !config_.default_exclusions ||
        planned.reason->rule != Rule::global)
      return std::move(error);
    leave(planned, error);
    planned.reason = Reason{Rule::not_quantizable, "", std::move(error.message)};
    return {};
  }

  QuantizationSpec with_fitting_group(const QuantizationSpec& spec, uint64_t axis, PlannedTensor& planned) {
    const bool is_limited = common_group_ != 0 && format_.needs_one_group_size(spec);
    const QuantizationSpec fitting = fall_back(spec, axis, planned, is_limited ? common_group_ : spec.group_size);
    if (fitting.group_size > 0 && format_.needs_one_group_size(fitting) &&
        (common_group_ == 0 || fitting.group_size < common_group_) &&
        (smaller_group_ == 0 || fitting.group_size < smaller_group_))
      smaller_group_ = fitting.group_size;
    return fitting;
  }

  // Where the format does not hold channels: one group a row has their scales, and the codes are stored another way.
  Result<WeightLayout> lay_out_fitting(const QuantizationSpec& spec, uint64_t axis, PlannedTensor& planned) {
    auto layout = format_.layout(planned.weight, {with_fitting_group(spec, axis, planned)});
    if (layout || format_.needs_one_group_size(spec)) return layout;
    QuantizationSpec row = spec;
    row.group_size = static_cast<int64_t>(axis);
    auto in_rows = format_.layout(planned.weight, {row});
    return in_rows ? std::move(in_rows) : std::move(layout);
  }

  QuantizationSpec with_common_group(QuantizationSpec spec, PlannedTensor& planned) {
    planned.add_reason(
        text_of("; groups of {}, as in the layers whose rows {} does not divide", common_group_, spec.group_size));
    regrouped_.add(planned.task.name);
    spec.group_size = common_group_;
    return spec;
  }

  // Source: vLLM's quantization/utils/fp8_utils.py, validate_fp8_block_shape.
  bool has_short_joined_block(const WeightDescription& weight, const WeightLayout& layout) const {
    return format_.joins_blocks() && layout.spec.qscheme == QScheme::per_block &&
           weight.shape[0] % layout.spec.block_rows != 0 && !families::joined_layer(weight.layer).empty();
  }

  // The length that groups have to divide.
  uint64_t group_axis(const WeightDescription& weight, const QuantizationSpec& spec) const {
    const auto rank = static_cast<int64_t>(weight.shape.size());
    auto axis = static_cast<size_t>(spec.ch_axis < 0 ? spec.ch_axis + rank : spec.ch_axis);
    if (weight.is_input_major) axis = weight.shape.size() - 2;
    if (axis >= weight.shape.size()) return 0;  // layout() says so
    return joined_.common_axis(weight.layer, weight.shape[axis]);
  }

  // A layer that fits is left if one that vLLM joins with it does not.
  void leave_with_others(PlannedTensor& planned) {
    const std::string_view reason = joined_.reason_to_leave(planned.weight.layer);
    if (reason.empty() || planned.task.layout->codes == CodeStorage::cast_values) return;
    planned.task.layout = WeightLayout();
    planned.reason = Reason{Rule::not_quantizable, "", std::string(reason)};
    leave(planned, error_at(ErrorCode::format_unsupported, planned.task.name, "{}", reason));
    omitted_with_others_.add(planned.task.name);
  }

  // transformers casts tensors next to bfloat16 weights to bfloat16, except those it converts.
  bool needs_bfloat16(const ModelTensor& tensor) const {
    if (tensor.stored.dtype != StorageDtype::F32 && tensor.stored.dtype != StorageDtype::F16) return false;
    const Stages& weight = config_.global.weight;
    return !weight.empty() && format_.loads_as_bfloat16(weight) &&
           (families::is_converted(family_, tensor.layer) || conversions_.find(tensor.layer) != nullptr);
  }

  // Decodes values whose bytes cannot be copied: codes of another format, parts of transposed tensors.
  Status keep_values(const ModelTensor& tensor, PlannedTensor& planned) {
    Stages plain(1);
    plain.front().dtype = Dtype::bfloat16;
    TRY(layout, format_.layout(planned.weight, plain));
    layout.source_transposed = tensor.is_input_major;
    planned.is_left = true;
    if (tensor.quantized)
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

  // Small floats rounded to another grid no longer fit their dtype, so they are written as BF16; doubles are computed in
  // float32.
  void widen_output(TensorTask& task) {
    const WeightLayout& given = task.layout;
    if (given.codes != CodeStorage::source_values) return;
    const bool is_small = small_float_of(given.source).has_value(), is_double = given.source == StorageDtype::F64;
    if (!is_small && !is_double) return;
    task.layout.edit([&](WeightLayout& layout) {
      set_dtype(layout.components.front(), is_small ? StorageDtype::BF16 : StorageDtype::F32);
    });
    if (!is_small) return;
    widened_.add(task.name);
  }

  // ---- layers, as the config block and loaders see them

  void add_outcome(PlannedTensor& planned) {
    const WeightDescription& weight = planned.weight;
    LayerPlan outcome{weight.layer, weight.layer_type, {}, {}, {}, families::loader_name(family_, weight.layer)};
    if (outcome.loader_layer == outcome.layer) outcome.loader_layer.clear();
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
      if (config.weight.empty() && has_activations) activations_alone_.add(weight.layer);
    }
    if (cache_.is_requested()) cache_.add(planned, outcome, resolver_.is_cached(weight.layer), plan_.requests);
    outcomes_.push_back(std::move(outcome));
  }

  // Warns only for configs that ask for it explicitly; presets must load.
  void check_loader(const PlannedTensor& planned, const LayerPlan& layer) {
    if (unloadable_ || !format_.packs_weight_tensor(layer) || !families::needs_plain_weight(family_, layer.layer))
      return;
    unloadable_ = true;
    const std::string message = text_of(
        "transformers cannot load packed weights of this family ({}): its class reads a tensor named \"weight\" "
        "while it loads, and this dtype is stored under other names",
        family_.model_type);
    constexpr const char* kHint = "use int8 or fp8_per_channel, which load, or write quark, gptq or fake-quantized";
    if (config_.default_exclusions)
      fail(planned, error_at(ErrorCode::format_unsupported, layer.layer, "{}; {}", message, std::string(kHint)));
    else
      warn("loader-limit", layer.layer, message, kHint);
  }

  void add_activations(PlannedTensor& planned, LayerPlan& outcome) {
    LayerConfig config = resolver_.layer_config(planned.weight.layer, planned.weight.layer_type);
    if (cache_.moves_outputs() && resolver_.is_cached(planned.weight.layer)) config.output_tensors = Stages();
    const OmittedActivations made = plan_activations(planned, outcome, config, format_, options_, plan_.requests);
    for (const Error& error : made.errors) fail(planned, error);
    inputs_left_out_ |= made.inputs_left_out;
    if (made.input_groups_left_out) input_groups_left_out_.add(outcome.layer);
    if (made.static_left_out) static_left_out_.add(outcome.layer);
  }

  // ---- the model as a whole

  void report() override {
    report_online_rotation();
    for (const std::string_view head : heads_without_tensor(outcomes_, family_)) resolver_.see_tied(head);
    for (Diagnostic& d : resolver_.unused_patterns()) diagnostics_.push_back(std::move(d));
    if (inputs_left_out_)
      warn("not-applied", text_of("{}/input_tensors", config_.where),
           text_of("{} cannot describe these dynamic inputs: the runtime will not quantize them", format_.name()),
           "write quark, or use int8 or fp8_e4m3 per tensor or per token");
    if (input_groups_left_out_.count != 0)
      diagnostics_.push_back(
          {has_fallback() ? Severity::note : Severity::warning, "group-fallback", input_groups_left_out_.first,
           text_of(
               "is the first of {} layers whose inputs stay as they are: the groups that the config asks for do not "
               "divide them, and runtimes cut inputs into whole groups",
               input_groups_left_out_.count),
           "give these layers other input_tensors, such as one scale per token"});
    if (static_left_out_.count != 0)
      warn("not-applied", static_left_out_.first,
           "static inputs and outputs are left out: their scales come from calibration, and only quark and "
           "compressed-tensors hold them",
           "give calibration, or set is_dynamic to true");
    if (activations_alone_.count != 0)
      warn("not-applied", activations_alone_.first,
           text_of("is the first of {} layers whose inputs or outputs the config quantizes, and whose weights it does "
                   "not: they stay as they are, because files hold scales of activations only for layers with "
                   "quantized weights",
                   activations_alone_.count),
           "give the layers a weight spec");
    if (auto warning = tied_head_warning(plan_)) diagnostics_.push_back(std::move(*warning));
    share_tensor_scales();
    report_joined_layers();
    if (regrouped_.count != 0)
      note("group-fallback", regrouped_.first,
           text_of("is the first of {} tensors that also get groups of {}: every loader of {} reads one group size for "
                   "all layers, and this is the largest that fits all rows",
                   regrouped_.count, common_group_, format_.name()),
           "exclude the layers whose rows it does not fit to keep larger groups");
    if (biases_.count != 0)
      warn(
          "not-applied", biases_.first,
          text_of("is the first of {} biases that have a spec and stay as they are, because {} does not hold quantized "
                  "biases",
                  biases_.count, format_.name()),
          "remove the key, or write fake-quantized");
    if (routers_.count != 0)
      note("routers-left", routers_.first,
           text_of(
               "is the first of {} routers of experts, which stay as they are: loaders read them as plain parameters",
               routers_.count));
    if (quantized_routers_.count != 0)
      warn("loader-limit", quantized_routers_.first,
           text_of(
               "is the first of {} quantized routers of experts: transformers, vLLM and AMD Quark read them as plain "
               "parameters, and compute with codes in place of values",
               quantized_routers_.count),
           "remove the rule that names them, or write fake-quantized");
    if (Status found = cache_.check_found(); !found) fail(std::move(found.error()));
    if (auto remark = cache_.remark()) diagnostics_.push_back(std::move(*remark));
    if (!config_.kv_cache.empty() && !config_.kv_cache_group.empty() && !cache_.shares_scales())
      note("no-effect", text_of("{}/kv_cache_group", config_.where),
           "layers share a scale in quark files of a calibrated cache, where all have one static symmetric spec per "
           "tensor");
    report_requantized();
    if (widened_.count != 0)
      note("dtype-promoted", widened_.first,
           text_of("is the first of {} tensors in floats of 8 or 4 bits: their new values are written as BF16, rounded "
                   "to it",
                   widened_.count));
  }

  // Algorithms may change weights that stay floats; a quantized source may be decoded.
  std::string_view coverage_hint() const override { return experts_.hint; }
  bool does_nothing() const override {
    if (plan_.quantized_count != 0 || !requested_.empty() || !plan_.config_changes.is_null()) return false;
    for (const PlannedTensor& planned : plan_.tensors)
      if (planned.is_left) return false;
    return true;
  }

  void share_tensor_scales() {
    List<LayerTask> weights;
    for (PlannedTensor& planned : plan_.tensors)
      if (!planned.task.is_copy && !planned.is_left && planned.weight.experts == 0)
        weights.push_back({planned.weight.layer, &planned.task});
    auto shared =
        share_scales(weights, config_.shared_scale_groups, config_.where, format_.joins_layers(), options_.tile_bytes);
    if (!shared)
      fail(std::move(shared.error()));
    else if (*shared)
      diagnostics_.push_back(std::move(**shared));
  }

  void report_joined_layers() {
    if (omitted_with_others_.count == 0) return;
    note("fused-layers", omitted_with_others_.first,
         text_of("is the first of {} tensors left as they are because vLLM joins their layers with others that the "
                 "format cannot hold",
                 omitted_with_others_.count));
  }

  // The runtime must apply the other half of R4.
  void report_online_rotation() {
    const RequestedAlgorithm* const rotation = find_online_rotation(requested_);
    if (rotation == nullptr) return;
    const std::string where = text_of("{}/r4", rotation->where);
    if (!format_.can_declare_online_rotation())
      return fail(error_at(ErrorCode::format_unsupported, where,
                           "the runtime has to rotate the input of down_proj, and {} cannot say so; write quark or "
                           "fake-quantized, or set it to false",
                           format_.name()));
    json::Value layers;
    layers.set("mlp.down_proj", "hadamard");
    plan_.config_changes.set("input_rotation", std::move(layers));
    warn("online-rotation", where,
         "down_proj expects inputs multiplied by a Hadamard matrix. Only runtimes that support Quark's R4 with this "
         "matrix, and evaluate and generate here, give correct output",
         "set r4 to false for files that load anywhere");
  }

  // ---- files

  Status place_files() override {
    TRY_VOID(format_.check(outcomes_));
    if (config_.shares_expert_inputs)
      share_expert_inputs(plan_.tensors, [&](const PlannedTensor& planned) {
        const Stages& inputs = resolver_.layer_config(planned.weight.layer, planned.weight.layer_type).input_tensors;
        return !inputs.empty() && inputs.front().symmetric && inputs.front().qscheme == QScheme::per_tensor;
      });
    if (cache_.shares_scales()) share_cache_scales(plan_.tensors, config_.kv_cache_group);
    TRY_VOID(lay_out_files(plan_, model_, options_.version));
    bool is_any = false;
    for (const LayerPlan& layer : outcomes_) is_any |= !layer.weight->empty();
    if (!is_any) return {};
    plan_.quantization_config = format_.quantization_config(config_, outcomes_, family_);
    cache_.describe(plan_.quantization_config);
    const RequestedAlgorithm* const rotation = find_online_rotation(requested_);
    if (rotation == nullptr || plan_.quantization_config.is_null()) return {};
    json::Array algorithms;
    algorithms.push_back(rotation->value);
    plan_.quantization_config.set("algo_config", std::move(algorithms));
    return {};
  }

  const families::ModelFamily& family_;
  const ExpertPlan& experts_;
  const families::Conversions conversions_;
  const CheckpointFormat& format_;
  const FusedLayerSchemes& joined_;
  const int64_t common_group_;
  const families::DefaultExclusions exclusions_;
  Resolver resolver_;
  CachePlan cache_;
  List<LayerPlan> outcomes_;
  bool inputs_left_out_ = false, unloadable_ = false, is_reordered_ = false, has_warned_of_blocks_ = false;
  int64_t smaller_group_ = 0;
  CountWithExample static_left_out_, input_groups_left_out_, activations_alone_, widened_, omitted_with_others_,
      routers_, quantized_routers_, biases_, regrouped_;
};

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

// Of a source that already has a tensor for each expert, where the family's class has one for all.
std::optional<LoaderLimit> single_experts_limit(const ModelIndex& model, const families::ModelFamily& family,
                                                const CheckpointFormat& format) {
  std::string reason = families::single_experts_limit(family);
  if (reason.empty() || format.needs_single_experts(family)) return std::nullopt;
  for (const ModelTensor& tensor : model.tensors())
    if (families::is_single_expert(tensor.layer))
      return LoaderLimit{
          tensor.layer, text_of("{}: it would compute with random weights in their place", reason),
          "start from a checkpoint that holds all experts in one tensor, as save_pretrained writes it, or "
          "load the file with vLLM where it knows the family"};
  return std::nullopt;
}

Diagnostic diagnostic_of(const LoaderLimit& limit, Severity severity) {
  return Diagnostic(severity, "loader-limit", limit.layer.empty() ? std::string("model") : limit.layer, limit.reason,
                    (limit.is_of_experts ? "leave all experts (--exclude-experts); or " : "") + limit.hint);
}

}  // namespace

Result<Plan> make_checkpoint_plan(const ModelIndex& model, const Config& config, const OutputFormat& output,
                                  const PlanOptions& options, List<Diagnostic>& diagnostics) {
  const CheckpointFormat& format = *output.checkpoint;
  TRY(family, families::ModelFamily::read(model.sibling_file("config.json")));
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
    if (format.joins_layers() && joined.update(planner.outcomes())) {
      diagnostics.resize(remarks);
      continue;
    }
    if (split && experts.left.empty() && !format.needs_single_experts(family) &&
        !has_quantized_experts(planner.outcomes())) {
      experts.leave("none of the experts would be quantized");
      split.reset();
      diagnostics.resize(remarks);
      continue;
    }
    const auto limit =
        plan && plan->quantized_count != 0 ? format.loader_limit(planner.outcomes(), family) : std::nullopt;
    const bool is_preset = config.default_exclusions, is_included = options.experts == ExpertChoice::include;
    if (limit && limit->is_of_experts && is_preset && !is_included && experts.left.empty() &&
        !is_expert_requested(planner.outcomes())) {
      experts.leave(limit->reason, limit->hint);
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
    if (const auto singles = single_experts_limit(model, family, format); plan && singles && !limit)
      diagnostics.push_back(diagnostic_of(*singles, Severity::warning));
    if (const std::string_view needed = format.needed_loader(planner.outcomes(), family);
        plan && !needed.empty() && !limit)
      diagnostics.push_back(
          {Severity::note, "loader-version", "model",
           text_of(
               "needs {}: older releases do not load experts or packed layers like these, or layers that they split",
               needed),
           needed});
    if (const std::string_view option = format.loader_option(planner.outcomes()); plan && !option.empty() && !limit)
      diagnostics.push_back({Severity::note, "loader-option", "model",
                             text_of("transformers needs {}: its plain loading refuses packed zero points", option),
                             option});
    if (plan && joined.warning()) diagnostics.push_back(*joined.warning());
    if (plan) plan->model = std::move(split);
    return plan;
  }
}

}  // namespace wasmquant
