// The layout of one weight: what the format holds, smaller groups where rows ask for them, and layers that are left instead.
#include "pipeline/checkpoint_plan/checkpoint_planner.h"
#include "runtimes/vllm/texts.h"

namespace wasmquant {

Status CheckpointPlanner::lay_out(const ModelTensor& tensor, PlannedTensor& planned, const Stages& stages) {
  if (!format_.traits().holds_end_codes && std::any_of(stages.begin(), stages.end(), counts_from_ends)) {
    std::string others;
    for (const CheckpointFormat* const other : checkpoint_formats())
      if (other->traits().holds_end_codes) others += text_of("{}{}", others.empty() ? "" : " or ", other->name());
    return error_at(ErrorCode::format_unsupported, planned.task.name,
                    "{} has no codes that count from the larger end of each group, with zero beyond them: set "
                    "scale_sign to positive, or write {}",
                    format_.name(), others);
  }
  auto layout = format_.layout(planned.weight, stages);
  if (has_fallback() && stages.size() == 1) {
    const QuantizationSpec& spec = stages.front();
    const uint64_t axis = group_axis(planned.weight, spec);
    // Block dtypes have no channels; where the last block of a row may be short, the format says.
    const bool has_blocks = info_of(spec.dtype).is_block();
    const bool fits = layout ? has_blocks || spec.group_size <= 0 || axis % static_cast<uint64_t>(spec.group_size) == 0
                             : layout.error().code != ErrorCode::group_size_invalid;
    const bool shares_size = fits && loader().needs_one_group_size(spec);
    if (shares_size && common_group_ != 0 && spec.group_size > common_group_)
      layout = format_.layout(planned.weight, {with_common_group(spec, planned)});
    else if (!fits)
      layout = lay_out_fitting(spec, axis, planned);
  }
  if (layout && has_short_joined_block(planned.weight, *layout)) {
    Error problem = error_at(ErrorCode::format_unsupported, planned.task.name, vllm::kJoinsBlocks,
                             planned.weight.shape[0], layout->spec.block_rows);
    if (config_.default_exclusions && planned.reason->rule == Rule::global)
      layout = std::move(problem);
    else if (!std::exchange(has_warned_of_blocks_, true))
      warn("fused-layers", planned.task.name, text_of(vllm::kWillNotLoad, problem.message), vllm::kJoinsBlocksHint);
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

QuantizationSpec CheckpointPlanner::with_fitting_group(const QuantizationSpec& spec, uint64_t axis,
                                                       PlannedTensor& planned) {
  const bool is_limited = common_group_ != 0 && loader().needs_one_group_size(spec);
  const QuantizationSpec fitting = fall_back(spec, axis, planned, is_limited ? common_group_ : spec.group_size);
  if (fitting.group_size > 0 && loader().needs_one_group_size(fitting) &&
      (common_group_ == 0 || fitting.group_size < common_group_) &&
      (smaller_group_ == 0 || fitting.group_size < smaller_group_))
    smaller_group_ = fitting.group_size;
  return fitting;
}

Result<WeightLayout> CheckpointPlanner::lay_out_fitting(const QuantizationSpec& spec, uint64_t axis,
                                                        PlannedTensor& planned) {
  auto layout = format_.layout(planned.weight, {with_fitting_group(spec, axis, planned)});
  if (layout || loader().needs_one_group_size(spec)) return layout;
  QuantizationSpec row = spec;
  row.group_size = static_cast<int64_t>(axis);
  auto in_rows = format_.layout(planned.weight, {row});
  return in_rows ? std::move(in_rows) : std::move(layout);
}

QuantizationSpec CheckpointPlanner::with_common_group(QuantizationSpec spec, PlannedTensor& planned) {
  planned.add_reason(
      text_of("; groups of {}, as in the layers whose rows {} does not divide", common_group_, spec.group_size));
  remarks_.regrouped.add(planned.task.name);
  spec.group_size = common_group_;
  return spec;
}

bool CheckpointPlanner::has_short_joined_block(const WeightDescription& weight, const WeightLayout& layout) const {
  return loader().joins_blocks && layout.spec.qscheme == QScheme::per_block &&
         weight.shape[0] % layout.spec.block_rows != 0 && !vllm::joined_layer(weight.layer).empty();
}

uint64_t CheckpointPlanner::group_axis(const WeightDescription& weight, const QuantizationSpec& spec) const {
  const auto rank = static_cast<int64_t>(weight.shape.size());
  auto axis = static_cast<size_t>(spec.ch_axis < 0 ? spec.ch_axis + rank : spec.ch_axis);
  if (weight.is_input_major) axis = weight.shape.size() - 2;
  if (axis >= weight.shape.size()) return 0;  // layout() says so
  return joined_.common_axis(weight.layer, weight.shape[axis]);
}

Status CheckpointPlanner::describe_storage(const ModelTensor& tensor, PlannedTensor& planned, Stages& stages) {
  const bool is_cast = info_of(stages.front().dtype).is_plain_cast();
  WeightDescription& weight = planned.weight;
  if (weight.layer_type == kConv1D) {
    if (!is_cast && !format_.traits().holds_input_major)
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

Status CheckpointPlanner::describe_groups(PlannedTensor& planned, const Stages& stages) {
  WeightDescription& weight = planned.weight;
  if (stages.size() != 1 || stages.front().qscheme != QScheme::per_group || weight.layer_type != "Linear") return {};
  const RequestedAlgorithm* const chooser = find_group_chooser(requested_, weight.layer);
  if (chooser == nullptr) return {};
  weight.is_reordered = true;
  if (format_.traits().holds_group_index) {
    if (runtimes::joins_layers(format_) && !std::exchange(is_reordered_, true))
      warn("loader-limit", text_of("{}/static_groups", chooser->where), vllm::kGroupsOutOfOrder,
           "set it to true for files that load anywhere; gptqmodel loads both");
    return {};
  }
  return error_at(ErrorCode::format_unsupported, text_of("{}/static_groups", chooser->where),
                  "with desc_act, false lets {} choose which columns share a scale, which loaders of {} do not "
                  "support; set it to "
                  "true, or write gptq or fake-quantized",
                  chooser->value["name"].as_string(), format_.name());
}

}  // namespace wasmquant
