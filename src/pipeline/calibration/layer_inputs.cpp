#include "pipeline/calibration/layer_inputs.h"

#include "core/message.h"
#include "model/linear_layers.h"

namespace wasmquant {

Status LayerInputs::show(std::string_view ending, ActivationRole role, std::span<const float> x, size_t columns) {
  std::string_view layer = calibration_.layer_ending_with(ending, role);
  if (layer.empty()) {
    const auto [name, expert] = renamed_(architecture_->family, ending);
    if (name.empty()) return {};
    layer = calibration_.layer_ending_with(expert < 0 ? name : expert_layer(name, static_cast<uint64_t>(expert)), role);
  }
  if (layer.empty()) return {};
  TRY_VOID(calibration_.begin(layer, role, {x.size() / columns, columns}));
  return calibration_.update(x);
}

std::string LayerInputs::module_of(uint32_t layer, const std::string& name) const {
  return text_of("{}.{}", model::module_of_block(*architecture_, layer), name);
}

Status LayerInputs::accept(uint32_t layer, model::LinearInput input, std::span<const float> x, size_t columns) {
  if (input == model::LinearInput::head)
    return show(architecture_->names_behind().of(model::ModelPart::head), ActivationRole::input, x, columns);
  return show_all(model::block_of(*architecture_, layer), layer, input, x, columns);
}

Status LayerInputs::show_all(const model::Architecture& part, uint32_t layer, model::LinearInput input,
                             std::span<const float> x, size_t columns) {
  for (const model::LinearLayer& consumer : model::consumers_of(part, input))
    TRY_VOID(show(module_of(layer, model::layer_name(part, consumer.weight)), ActivationRole::input, x, columns));
  return {};
}

// To the layer of the expert, or to its share in what has all of them, whose name has no number.
Status LayerInputs::accept_expert(uint32_t layer, uint32_t expert, model::LinearInput input, std::span<const float> x,
                                  size_t columns) {
  const model::Architecture& a = *architecture_;
  TRY_VOID(show_all(model::expert_of(a, expert), layer, input, x, columns));
  using model::ModelPart;
  const bool is_output = input == model::LinearInput::feed_forward_output;
  List<ModelPart> parts{is_output ? ModelPart::experts_down : ModelPart::experts_gate_up,
                        is_output ? ModelPart::expert_down : ModelPart::expert_gate};
  if (!is_output) parts.push_back(ModelPart::expert_up);
  for (const ModelPart part : parts) {
    std::string module = a.names.of(part);
    if (module.ends_with(".weight")) module.resize(module.rfind('.'));
    if (const size_t at = module.find("#."); at != module.npos) module.erase(at, 2);
    if (module.empty()) continue;
    TRY_VOID(show(expert_layer(module_of(layer, module), expert), ActivationRole::input, x, columns));
  }
  return {};
}

Status LayerInputs::accept_cached(uint32_t layer, model::CachedValue value, std::span<const float> x, size_t columns) {
  const model::ModelNames& names = architecture_->names;
  const std::string key = module_of(layer, names.of(model::ModelPart::k)),
                    values = module_of(layer, names.of(model::ModelPart::v));
  const std::string output = module_of(layer, names.of(model::ModelPart::o)),
                    attention = output.substr(0, output.rfind('.'));
  switch (value) {
    case model::CachedValue::projected_key:
      return names.has(model::ModelPart::k) ? show(key, ActivationRole::output, x, columns) : Status();
    case model::CachedValue::key:
      return show(attention, ActivationRole::key, x, columns);
    case model::CachedValue::projected_value:
      return names.has(model::ModelPart::v) ? show(values, ActivationRole::output, x, columns) : Status();
    default:
      return show(attention, ActivationRole::value, x, columns);
  }
}

}  // namespace wasmquant
