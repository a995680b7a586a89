// A planner for one layer, and scales that the experts of a block share.
#include "pipeline/checkpoint_plan/static_activation_plan.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "config/match/name_match.h"
#include "core/message.h"
#include "families/module_path.h"

namespace wasmquant {
namespace {

class StaticActivationPlanner {
 public:
  StaticActivationPlanner(PlannedTensor& planned, LayerPlan& outcome, const CheckpointFormat& format,
                          const PlanOptions& options, List<ActivationRequest>& requests)
      : planned_(planned), outcome_(outcome), format_(format), options_(options), requests_(requests) {
    const WeightDescription& weight = planned.weight;
    if (weight.layer_type == "Linear" && weight.shape.size() == 2) features_ = {weight.shape[1], weight.shape[0]};
  }

  OmittedActivations run(const LayerConfig& config) {
    add(ActivationRole::input, config.input_tensors);
    add(ActivationRole::output, config.output_tensors);
    return std::move(out_);
  }

 private:
  struct Features {
    uint64_t inputs = 0, outputs = 0;  // 0: unknown, not a linear layer
  };

  void add(ActivationRole role, const Stages& stages) {
    const bool is_input = role == ActivationRole::input;
    ActivationRequest request{planned_.weight.layer, role, is_input ? features_.inputs : features_.outputs};
    request.importance = is_input && planned_.task.layout->spec.observer_options.weighted;
    if (request.importance && request.features == 0)
      out_.errors.push_back(error_at(ErrorCode::not_implemented, planned_.task.name,
                                     "\"weighted\" is for linear layers; exclude this one"));
    if (is_input && !are_static(stages)) {
      const bool fits = stages.empty() || format_.stores_input_scales(stages);
      const bool are_divided = stages.empty() || divides(stages.front(), request.features);
      if (fits && are_divided) outcome_.inputs = stages;
      out_.inputs_left_out |= !fits;
      out_.input_groups_left_out |= fits && !are_divided;
    }
    const auto storage = are_static(stages) ? static_storage(stages, request.features) : std::nullopt;
    if (storage) {
      request.spec = storage->spec;
      request.scales = storage->scale_shape.empty() ? 1 : storage->scale_shape.front();
      (is_input ? outcome_.inputs : outcome_.outputs) = stages;
    }
    if (!storage && !request.importance) return;
    if (const json::Value& found = found_for(request, options_.activations); !found.is_null()) {
      if (storage)
        for (ConstantTensor& tensor : activation_tensors(request.layer, role, found, *storage))
          planned_.activations.push_back(std::move(tensor));
      if (request.importance) planned_.task.importance = importance_in(found);
    }
    requests_.push_back(std::move(request));
  }

  // Runtimes cut a row of inputs into whole groups (compressed-tensors' unflatten, vLLM's per_token_group_quant_fp8).
  static bool divides(const QuantizationSpec& inputs, uint64_t features) {
    return inputs.qscheme != QScheme::per_group || inputs.group_size <= 0 || features == 0 ||
           features % static_cast<uint64_t>(inputs.group_size) == 0;
  }

  // Nullopt without calibration or if the format cannot store it.
  std::optional<ActivationStorage> static_storage(const Stages& stages, uint64_t channels) {
    if (!options_.calibrates || !format_.traits().holds_activation_scales) {
      out_.static_left_out = true;
      return std::nullopt;
    }
    auto storage = activation_storage(stages, channels);
    if (storage && planned_.task.layout->codes != CodeStorage::cast_values &&
        format_.choose_activation_storage(planned_.weight, *storage))
      return storage;
    out_.errors.push_back(error_at(ErrorCode::format_unsupported, planned_.weight.layer,
                                   "{} stores static scales of int8, uint8 and fp8 per tensor, quark also per channel, "
                                   "and not these of {}; set is_dynamic to true",
                                   format_.name(), info_of(stages.front().dtype).name));
    return std::nullopt;
  }

  PlannedTensor& planned_;
  LayerPlan& outcome_;
  const CheckpointFormat& format_;
  const PlanOptions& options_;
  List<ActivationRequest>& requests_;
  Features features_;
  OmittedActivations out_;
};

}  // namespace

namespace {

// "...experts.*.gate_proj" of "...experts.3.gate_proj"; empty for other layers.
std::string projection_of(std::string_view layer) {
  constexpr std::string_view kExperts = ".experts.";
  const size_t at = layer.find(kExperts);
  if (at == std::string_view::npos) return {};
  const size_t begin = at + kExperts.size(), end = layer.find('.', begin);
  return end == std::string_view::npos ? std::string() : text_of("{}*{}", layer.substr(0, begin), layer.substr(end));
}

// Bits of a positive float of 16 or 32 bits, which are in the order of the numbers.
uint32_t order_of(const ConstantTensor& scale) {
  uint32_t bits = 0;
  std::memcpy(&bits, scale.bytes.data(), std::min(scale.bytes.size(), sizeof bits));
  return bits;
}

// `group_of`: scales of one name are shared; those of an empty one are not.
void share_largest(List<PlannedTensor>& tensors, std::string_view ending,
                   const std::function<std::string(const PlannedTensor&)>& group_of) {
  std::map<std::string, const ConstantTensor*> largest;
  List<std::pair<std::string, ConstantTensor*>> shared;
  for (PlannedTensor& planned : tensors)
    for (ConstantTensor& known : planned.activations) {
      if (known.component.role != Role::scale || !known.component.name_part.ends_with(ending)) continue;
      std::string group = group_of(planned);
      if (group.empty()) continue;
      const ConstantTensor*& most = largest[group];
      if (most == nullptr || order_of(known) > order_of(*most)) most = &known;
      shared.push_back({std::move(group), &known});
    }
  for (auto& [group, known] : shared)
    if (const ConstantTensor* most = largest[group]; most->bytes.size() == known->bytes.size())
      known->bytes = std::string(most->bytes);
}

}  // namespace

void share_expert_inputs(List<PlannedTensor>& tensors, const std::function<bool(const PlannedTensor&)>& is_symmetric) {
  share_largest(tensors, ".input_scale", [&](const PlannedTensor& planned) {
    return is_symmetric(planned) ? projection_of(planned.weight.layer) : std::string();
  });
}

void share_cache_scales(List<PlannedTensor>& tensors, const List<std::string>& patterns) {
  List<NamePattern> group;
  for (const std::string& pattern : patterns) group.emplace_back(pattern);
  share_largest(tensors, ".output_scale", [&](const PlannedTensor& planned) {
    const std::string& layer = planned.weight.layer;
    const bool is_named =
        std::any_of(group.begin(), group.end(), [&](const NamePattern& pattern) { return pattern.matches(layer); });
    const size_t length = layer.size() - families::last_component(layer).size();
    return is_named ? layer.substr(0, length) : std::string();
  });
}

bool quantizes_inputs(const Stages& inputs, const CheckpointFormat& format, const PlanOptions& options) {
  if (inputs.empty()) return false;
  return are_static(inputs) ? options.calibrates && format.traits().holds_activation_scales
                            : format.stores_input_scales(inputs);
}

OmittedActivations plan_activations(PlannedTensor& planned, LayerPlan& outcome, const LayerConfig& config,
                                    const CheckpointFormat& format, const PlanOptions& options,
                                    List<ActivationRequest>& requests) {
  return StaticActivationPlanner(planned, outcome, format, options, requests).run(config);
}

}  // namespace wasmquant
