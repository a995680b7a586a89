// A mixture of experts in the place of a block's feed-forward: which tokens go where, and what an expert gives them.
#include <algorithm>
#include <iterator>
#include <utility>

#include "model/block.h"
#include "model/experts/clamped_gate.h"
#include "model/joined_experts.h"
#include "numeric/exponential.h"

namespace wasmquant::model {

// Shows normed_ to the router and to the expert that every token sees.
Result<bool> BlockRunner::send_to_experts(const BlockValues& weights, uint32_t layer, std::span<float> x,
                                          InputSink* sink, BlockState* state) {
  const Architecture& a = architecture_;
  const size_t hidden = a.hidden, wide = a.routing.shared_width;
  const bool joins = joins_experts(a, layer);
  if (joins) change_ = router_input(a, weights, x);
  linear(joins ? change_ : normed_, weights, Slot::router, Slot::router_bias, hidden, a.routing.experts, gate_);
  routed_->input.assign(normed_.begin(), normed_.end());
  route(a.routing, {gate_.data(), tokens_ * a.routing.experts}, weights[Slot::correction], *routed_);
  if (wide == 0) return true;
  run_gated(weights, gate_of(ModelPart::shared_gate, ModelPart::shared_gate_up), wide);
  kernels::activate_gate(a.activation, gate_, up_.data());
  TRY(goes_on, show(layer, LinearInput::feed_forward_output, {gate_.data(), tokens_ * wide}, wide, x, sink, nullptr));
  // The router reads the same input as the gate, so a run resumes there.
  if (!goes_on && state != nullptr) *state = {LinearInput::feed_forward, normed_, {x.begin(), x.end()}};
  if (!goes_on) return false;
  linear(gate_, weights, Slot::down, wide, hidden, output_);
  if (a.names.has(ModelPart::shared_scale)) {
    linear(normed_, weights, Slot::shared_scale, hidden, 1, up_);
    for (size_t i = 0; i < output_.size(); ++i) output_[i] *= sigmoid_of(up_[i / hidden]);
  }
  joins ? begin_joined(a, weights, x, output_, *routed_) : add_to_x(weights, Slot::feed_forward_post_norm, x);
  return true;
}

// normed_: what the tokens bring that are sent to the expert.
void BlockRunner::gather(const Routed& routed, uint32_t expert) {
  const size_t hidden = architecture_.hidden, chosen = architecture_.routing.chosen;
  normed_.clear();
  for (size_t i = 0; i < routed.experts.size(); ++i) {
    if (routed.experts[i] != expert) continue;
    const auto row = routed.input.begin() + static_cast<ptrdiff_t>(i / chosen * hidden);
    const float scale = architecture_.routing.scales_input ? routed.weights[i] : 1;
    std::transform(row, row + static_cast<ptrdiff_t>(hidden), std::back_inserter(normed_),
                   [scale](float value) { return value * scale; });
  }
  tokens_ = normed_.size() / hidden;
}

// gate_ from normed_; false if the sink ends the run.
Result<bool> BlockRunner::run_expert_gate(const BlockValues& block, const BlockValues& weights, uint32_t layer,
                                          uint32_t expert, InputSink* sink, BlockState* state) {
  const Architecture& a = architecture_;
  const size_t hidden = a.hidden, wide = a.routing.width;
  if (sink != nullptr) TRY_VOID(sink->accept_expert(layer, expert, LinearInput::feed_forward, normed_, hidden));
  if (sink != nullptr && sink->ends_at(LinearInput::feed_forward)) return false;
  if (a.routing.gate_limit > 0) {
    linear(normed_, weights, Slot::gate, hidden, 2 * wide, fused_);
    clamped_gate(a.routing, block[Slot::expert_biases_up], expert, fused_, gate_);
  } else {
    run_gated(weights,
              a.names.has(ModelPart::expert_gate) || a.names.has(ModelPart::experts_gate_up) ? Gate::apart : Gate::none,
              wide);
    kernels::activate_gate(a.activation, gate_, up_.data());
  }
  if (sink == nullptr) return true;
  TRY_VOID(sink->accept_expert(layer, expert, LinearInput::feed_forward_output, {gate_.data(), tokens_ * wide}, wide));
  if (!sink->ends_at(LinearInput::feed_forward_output)) return true;
  if (state != nullptr) *state = {LinearInput::feed_forward_output, gate_, {}};
  return false;
}

Status BlockRunner::run_expert(const BlockValues& block, const BlockValues& weights, uint32_t layer, uint32_t expert,
                               const Routed& routed, std::span<float> x, InputSink* sink, BlockState* state) {
  const Architecture& a = architecture_;
  const size_t hidden = a.hidden, wide = a.routing.width, chosen = a.routing.chosen;
  gather(routed, expert);
  if (tokens_ == 0) return {};
  if (state != nullptr && !state->input.empty()) {
    gate_ = std::exchange(state->input, {});
  } else {
    TRY(goes_on, run_expert_gate(block, weights, layer, expert, sink, state));
    if (!goes_on) return {};
  }
  if (x.empty()) return {};
  linear(gate_, weights, Slot::down, wide, hidden, output_);
  if (const std::vector<float>& biases = block[Slot::expert_biases_down]; !biases.empty())
    for (size_t i = 0; i < output_.size(); ++i) output_[i] += biases[expert * hidden + i % hidden];
  const float* y = output_.data();
  for (size_t i = 0; i < routed.experts.size(); ++i) {
    if (routed.experts[i] != expert) continue;
    const float weight = (a.routing.scales_input ? 1 : routed.weights[i]) * a.scales.residual;
    for (size_t j = 0; j < hidden; ++j) x[i / chosen * hidden + j] += weight * y[j];
    y += hidden;
  }
  return {};
}

}  // namespace wasmquant::model
