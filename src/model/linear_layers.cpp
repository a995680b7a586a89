#include "model/linear_layers.h"

namespace wasmquant::model {
namespace {

constexpr LinearLayer kLayers[kLinearLayers] = {
    {Slot::q, Slot::q_bias, LinearInput::attention},
    {Slot::k, Slot::k_bias, LinearInput::attention},
    {Slot::v, Slot::v_bias, LinearInput::attention},
    {Slot::o, Slot::o_bias, LinearInput::attention_output},
    {Slot::gate, Slot::gate_bias, LinearInput::feed_forward},
    {Slot::up, Slot::up_bias, LinearInput::feed_forward},
    {Slot::down, Slot::down_bias, LinearInput::feed_forward_output},
};

}  // namespace

std::span<const LinearLayer> linear_layers() noexcept { return kLayers; }

const std::string& layer_name(const Architecture& a, Slot weight) noexcept {
  const ModelNames& names = a.names;
  if (weight == Slot::q && names.has(ModelPart::qkv)) return names.of(ModelPart::qkv);
  if (weight == Slot::q && names.has(ModelPart::heads_qkv)) return names.of(ModelPart::heads_qkv);
  if (weight == Slot::gate && names.has(ModelPart::gate_up)) return names.of(ModelPart::gate_up);
  return names.of(static_cast<ModelPart>(weight));
}

std::span<const LinearLayer> consumers_of(const Architecture& architecture, LinearInput input) noexcept {
  const auto is_one = [&](const LinearLayer& layer) {
    return layer.reads == input && !layer_name(architecture, layer.weight).empty();
  };
  size_t first = 0, end = kLinearLayers;
  while (first < end && !is_one(kLayers[first])) ++first;
  while (end > first && !is_one(kLayers[end - 1])) --end;
  return linear_layers().subspan(first, end - first);
}

}  // namespace wasmquant::model
