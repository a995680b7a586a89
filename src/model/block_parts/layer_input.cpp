// What surrounds a block, or follows its feed-forward: streams that follow the one that it computes, the layer's own input p,
//   x += norm(layer_out(activation(layer_gate(x)) * p)),
// and a number that scales the stream. Source: transformers, models/gemma4/modeling_gemma4.py and models/gemma3n/modeling_gemma3n.py.
#include <algorithm>

#include "kernels/exponential.h"
#include "model/block.h"
#include "model/steps/norm.h"
#include "model/steps/streams.h"

namespace wasmquant::model {

Result<bool> BlockRunner::run_layer_input(const BlockValues& weights, uint32_t layer, std::span<const float> from,
                                          std::span<float> x, InputSink* sink, BlockState* state) {
  const Architecture& a = architecture_;
  const size_t hidden = a.hidden, wide = a.layer_inputs.width;
  const bool resumes = state != nullptr && !state->input.empty();
  if (resumes && state->at == LinearInput::layer_output) {
    gate_.swap(state->input);
  } else {
    normed_.assign(from.begin(), from.end());
    if (!resumes) {
      TRY(goes_on, show(layer, LinearInput::layer_input, normed_, hidden, x, sink, state));
      if (!goes_on) return false;
    }
    linear(normed_, weights, Slot::layer_gate, Slot::layer_gate_bias, hidden, wide, gate_);
    up_.resize(tokens_ * wide);
    for (size_t token = 0; token < tokens_; ++token)
      std::copy_n(layer_inputs_.data() + (token * a.layers + layer) * wide, wide, up_.data() + token * wide);
    kernels::activate_gate(a.activation, gate_, up_.data());
    if (resumes) state->input.clear();
    TRY(goes_on, show(layer, LinearInput::layer_output, gate_, wide, x, sink, state));
    if (!goes_on) return false;
  }
  if (resumes) state->input.clear();
  linear(gate_, weights, Slot::layer_out, Slot::layer_out_bias, wide, hidden, output_);
  normalize({a.norms.epsilon, a.norms.plus_one, a.norms.subtract_mean}, weights[Slot::layer_norm], {}, output_.data(),
            tokens_, hidden, output_.data());
  return true;
}

Status BlockRunner::add_layer_input(const BlockValues& weights, uint32_t layer, std::span<float> x, InputSink* sink,
                                    BlockState* state) {
  if (state != nullptr && !state->input.empty()) std::copy(state->stream.begin(), state->stream.end(), x.begin());
  if (architecture_.layer_inputs.width > 0) {
    TRY(is_whole, run_layer_input(weights, layer, x, x, sink, state));
    if (!is_whole) return {};
    for (size_t i = 0; i < x.size(); ++i) x[i] += output_[i];
  }
  if (const std::vector<float>& scale = weights[Slot::layer_scale]; !scale.empty())
    for (float& value : x) value *= scale[0];
  return {};
}

Status BlockRunner::run_streams(const BlockValues& weights, uint32_t layer, std::span<const uint32_t> lengths,
                                std::span<float> x, InputSink* sink, BlockState* state) {
  const Architecture& a = architecture_;
  const size_t size = tokens_ * a.hidden;
  const StreamWeights of_streams{weights[Slot::stream_router], weights[Slot::stream_router_norm],
                                 weights[Slot::predictions], weights[Slot::corrections]};
  const std::vector<float> predicted = predict_streams(a, of_streams, x);
  const auto active = predicted.begin() + static_cast<ptrdiff_t>(a.streams.active * size);
  active_.assign(active, active + static_cast<ptrdiff_t>(size));
  if (state != nullptr && !state->input.empty() && state->at >= LinearInput::layer_input) {
    active_ = state->stream;
  } else {
    TRY(is_whole, run_stream(weights, layer, lengths, active_, sink, state));
    if (!is_whole) return {};
  }
  correct_streams(a, of_streams, predicted, active_, x);
  const std::span<const float> computed = x.subspan(a.streams.active * size, size);
  std::vector<float> from(computed.begin(), computed.end());
  if (const std::vector<float>& scale = weights[Slot::stream_scale]; !scale.empty())
    for (size_t i = 0; i < size; ++i) from[i] *= scale[i % a.hidden];
  TRY(is_whole, run_layer_input(weights, layer, from, active_, sink, state));
  if (!is_whole) return {};
  for (size_t i = size; i < x.size(); ++i) x[i] += output_[i % size];
  return {};
}

// The norm of the block's input with what a product of two narrow matrices makes of it (Gemma 3n, LAuReL).
void BlockRunner::run_low_rank(const BlockValues& weights, std::span<const float> x) {
  const Architecture& a = architecture_;
  normed_.assign(x.begin(), x.end());
  apply_norm(weights, Slot::input_norm, x.data(), a.hidden, normed_);
  linear(normed_, weights, Slot::low_rank_in, a.hidden, a.streams.low_rank, fused_);
  linear(fused_, weights, Slot::low_rank_out, a.streams.low_rank, a.hidden, low_rank_);
  normalize({a.norms.epsilon, a.norms.plus_one, a.norms.subtract_mean}, weights[Slot::low_rank_norm], {},
            low_rank_.data(), tokens_, a.hidden, low_rank_.data());
  for (size_t i = 0; i < low_rank_.size(); ++i) low_rank_[i] += normed_[i];
}

}  // namespace wasmquant::model
