#include "model/linear_layers.h"

namespace wasmquant::model {
namespace {

constexpr LinearLayer kLayers[kLinearLayers] = {
    {Slot::q, Slot::q_bias, LinearInput::attention, "self_attn.q_proj"},
    {Slot::k, Slot::k_bias, LinearInput::attention, "self_attn.k_proj"},
    {Slot::v, Slot::v_bias, LinearInput::attention, "self_attn.v_proj"},
    {Slot::o, Slot::o_bias, LinearInput::attention_output, "self_attn.o_proj"},
    {Slot::gate, Slot::gate_bias, LinearInput::feed_forward, "mlp.gate_proj"},
    {Slot::up, Slot::up_bias, LinearInput::feed_forward, "mlp.up_proj"},
    {Slot::down, Slot::down_bias, LinearInput::feed_forward_output, "mlp.down_proj"},
};

}  // namespace

std::span<const LinearLayer> linear_layers() noexcept { return kLayers; }

std::span<const LinearLayer> consumers_of(LinearInput input) noexcept {
  size_t first = 0, end = kLinearLayers;
  while (first < end && kLayers[first].reads != input) ++first;
  while (end > first && kLayers[end - 1].reads != input) --end;
  return linear_layers().subspan(first, end - first);
}

}  // namespace wasmquant::model
