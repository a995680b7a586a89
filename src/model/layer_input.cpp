// What follows the feed-forward of a block: the layer's own input p,
//   x += norm(layer_out(activation(layer_gate(x)) * p)),
// and a number that scales the stream. Source: transformers, models/gemma4/modeling_gemma4.py.
#include <algorithm>

#include "kernels/exponential.h"
#include "model/block.h"
#include "model/steps/norm.h"

namespace wasmquant::model {

Status BlockRunner::add_layer_input(const BlockValues& weights, uint32_t layer, std::span<float> x, InputSink* sink,
                                    BlockState* state) {
  const Architecture& a = architecture_;
  const size_t hidden = a.hidden, wide = a.layer_inputs.width;
  const bool resumes = state != nullptr && !state->input.empty();
  if (resumes) std::copy(state->stream.begin(), state->stream.end(), x.begin());
  if (wide > 0) {
    if (resumes && state->at == LinearInput::layer_output) {
      gate_.swap(state->input);
    } else {
      normed_.assign(x.begin(), x.end());
      if (!resumes) {
        TRY(goes_on, show(layer, LinearInput::layer_input, normed_, hidden, x, sink, state));
        if (!goes_on) return {};
      }
      linear(normed_, weights, Slot::layer_gate, Slot::layer_gate_bias, hidden, wide, gate_);
      up_.resize(tokens_ * wide);
      for (size_t token = 0; token < tokens_; ++token)
        std::copy_n(layer_inputs_.data() + (token * a.layers + layer) * wide, wide, up_.data() + token * wide);
      kernels::activate_gate(a.activation, gate_, up_.data());
      if (resumes) state->input.clear();
      TRY(goes_on, show(layer, LinearInput::layer_output, gate_, wide, x, sink, state));
      if (!goes_on) return {};
    }
    if (resumes) state->input.clear();
    linear(gate_, weights, Slot::layer_out, Slot::layer_out_bias, wide, hidden, output_);
    normalize({a.norm_epsilon, a.norm_plus_one, a.layer_norms}, weights[Slot::layer_norm], {}, output_.data(), tokens_,
              hidden, output_.data());
    for (size_t i = 0; i < x.size(); ++i) x[i] += output_[i];
  }
  if (const std::vector<float>& scale = weights[Slot::layer_scale]; !scale.empty())
    for (float& value : x) value *= scale[0];
  return {};
}

}  // namespace wasmquant::model
