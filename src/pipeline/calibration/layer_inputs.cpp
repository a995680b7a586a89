#include "pipeline/calibration/layer_inputs.h"

#include "core/message.h"
#include "model/linear_layers.h"

namespace wasmquant {

Status LayerInputs::show(std::string_view ending, ActivationRole role, std::span<const float> x, size_t columns) {
  const std::string_view layer = calibration_.layer_ending_with(ending, role);
  if (layer.empty()) return {};
  TRY_VOID(calibration_.begin(layer, role, {x.size() / columns, columns}));
  return calibration_.update(x);
}

Status LayerInputs::accept(uint32_t layer, model::LinearInput input, std::span<const float> x, size_t columns) {
  if (input == model::LinearInput::head) return show("lm_head", ActivationRole::input, x, columns);
  for (const model::LinearLayer& consumer : model::consumers_of(input))
    TRY_VOID(show(text_of("layers.{}.{}", layer, consumer.name), ActivationRole::input, x, columns));
  return {};
}

Status LayerInputs::accept_cached(uint32_t layer, model::CachedValue value, std::span<const float> x, size_t columns) {
  const std::string attention = text_of("layers.{}.self_attn", layer);
  switch (value) {
    case model::CachedValue::projected_key:
      return show(attention + ".k_proj", ActivationRole::output, x, columns);
    case model::CachedValue::key:
      return show(attention, ActivationRole::key, x, columns);
    default:
      TRY_VOID(show(attention + ".v_proj", ActivationRole::output, x, columns));
      return show(attention, ActivationRole::value, x, columns);
  }
}

}  // namespace wasmquant
