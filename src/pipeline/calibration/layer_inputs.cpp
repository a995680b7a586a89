#include "pipeline/calibration/layer_inputs.h"

#include "core/message.h"
#include "model/linear_layers.h"

namespace wasmquant {

Status LayerInputs::show(std::string_view ending, std::span<const float> x, size_t columns) {
  const std::string_view layer = calibration_.layer_ending_with(ending);
  if (layer.empty()) return {};
  TRY_VOID(calibration_.begin(layer, ActivationRole::input, {x.size() / columns, columns}));
  return calibration_.update(x);
}

Status LayerInputs::accept(uint32_t layer, model::LinearInput input, std::span<const float> x, size_t columns) {
  if (input == model::LinearInput::head) return show("lm_head", x, columns);
  for (const model::LinearLayer& consumer : model::consumers_of(input))
    TRY_VOID(show(text_of("layers.{}.{}", layer, consumer.name), x, columns));
  return {};
}

}  // namespace wasmquant
