#include "model/linear_layers.h"

namespace wasmquant::model {
namespace {

constexpr LinearLayer kLayers[kLinearLayers] = {
    {Slot::q, Slot::q_bias, LinearInput::attention},
    {Slot::k, Slot::k_bias, LinearInput::attention},
    {Slot::v, Slot::v_bias, LinearInput::attention},
    {Slot::state_in, Slot::state_in_bias, LinearInput::attention},
    {Slot::strength, Slot::strength_bias, LinearInput::attention},
    {Slot::q_b, Slot::q_b_bias, LinearInput::latent_query},
    {Slot::kv_b, Slot::kv_b_bias, LinearInput::latent_key},
    {Slot::encoded_k, Slot::encoded_k_bias, LinearInput::encoded},
    {Slot::encoded_v, Slot::encoded_v_bias, LinearInput::encoded},
    {Slot::state_out, Slot::state_out_bias, LinearInput::state_output},
    {Slot::o, Slot::o_bias, LinearInput::attention_output},
    {Slot::gate, Slot::gate_bias, LinearInput::feed_forward},
    {Slot::up, Slot::up_bias, LinearInput::feed_forward},
    {Slot::down, Slot::down_bias, LinearInput::feed_forward_output},
    {Slot::layer_gate, Slot::layer_gate_bias, LinearInput::layer_input},
    {Slot::layer_out, Slot::layer_out_bias, LinearInput::layer_output},
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

size_t input_columns(const Architecture& a, LinearInput input) noexcept {
  switch (input) {
    case LinearInput::latent_query:
      return mixer_of(a, 0) == Mixer::selective ? a.recurrence.value_columns() : a.latent.query_rank;
    case LinearInput::latent_key:
      return mixer_of(a, 0) == Mixer::selective ? a.recurrence.step_rank : a.latent.rank;
    case LinearInput::state_output:
      return a.recurrence.value_columns();
    case LinearInput::attention_output:
      return mixed_columns(a, 0);
    case LinearInput::feed_forward_output:
      return a.intermediate;
    case LinearInput::layer_output:
      return a.layer_inputs.width;
    default:
      return a.hidden;
  }
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
