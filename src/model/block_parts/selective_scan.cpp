// Mamba 1 (A. Gu, T. Dao 2023), with channels x and gates z, [x | z] = W_in n of a token n:
//   x = silu(convolution(x)),   [s | k | q] = W_x x,   step = softplus(W_dt s + bias),   for each channel its state S [key_dim]:
//   S = exp(-exp(A) step) S + step x k;   y = S q + skip x;   layer = W y silu(z)
// s, k and q may have norms, with weights (Jamba) or without (Falcon Mamba).
// Source: transformers, models/mamba/modeling_mamba.py, models/falcon_mamba, models/jamba.
#include <algorithm>
#include <cmath>

#include "kernels/exponential.h"
#include "model/block.h"
#include "model/steps/norm.h"
#include "numeric/exponential.h"
#include "numeric/softplus.h"

namespace wasmquant::model {

// Rows [s | k | q] of tokens.
void BlockRunner::norm_states(const BlockValues& weights, std::vector<float>& states) const {
  const Recurrence& r = architecture_.recurrence;
  const size_t all = r.step_rank + 2 * size_t{r.key_dim};
  const struct {
    ModelPart part;
    Slot slot;
    size_t first, columns;
  } norms[] = {{ModelPart::mixer_norm, Slot::mixer_norm, 0, r.step_rank},
               {ModelPart::mixer_key_norm, Slot::k_norm, r.step_rank, r.key_dim},
               {ModelPart::mixer_query_norm, Slot::q_norm, r.step_rank + size_t{r.key_dim}, r.key_dim}};
  for (const auto& [part, slot, first, columns] : norms)
    for (float* row = states.data() + first; architecture_.names.has(part) && row < states.data() + states.size();
         row += all)
      normalize({r.norm_epsilon}, weights[slot], {}, row, 1, columns, row);
}

Result<bool> BlockRunner::scan(const BlockValues& weights, uint32_t layer, std::span<const uint32_t> lengths,
                               InputSink* sink) {
  const Recurrence& r = architecture_.recurrence;
  const size_t channels = r.value_columns(), rank = r.step_rank, all = rank + 2 * size_t{r.key_dim};
  linear(normed_, weights, Slot::q, Slot::q_bias, architecture_.hidden, 2 * channels, fused_);
  q_.resize(tokens_ * channels);
  gate_.resize(tokens_ * channels);
  for (size_t token = 0; token < tokens_; ++token) {
    const float* const from = fused_.data() + 2 * token * channels;
    std::copy_n(from, channels, q_.data() + token * channels);
    std::copy_n(from + channels, channels, gate_.data() + token * channels);
  }
  convolve_channels(weights, layer, lengths, channels, fused_);
  q_.assign(fused_.size(), 1.0f);
  kernels::activate_gate(kernels::Activation::silu, fused_, q_.data());
  TRY(sees_channels, show(layer, LinearInput::latent_query, fused_, channels, {}, sink, nullptr));
  if (!sees_channels) return false;
  linear(fused_, weights, Slot::q_b, Slot::q_b_bias, channels, all, q_);
  norm_states(weights, q_);
  output_.resize(tokens_ * rank);
  for (size_t token = 0; token < tokens_; ++token)
    std::copy_n(q_.data() + token * all, rank, output_.data() + token * rank);
  TRY(sees_steps, show(layer, LinearInput::latent_key, output_, rank, {}, sink, nullptr));
  if (!sees_steps) return false;
  linear(output_, weights, Slot::kv_b, Slot::kv_b_bias, rank, channels, up_);
  scan_tokens(weights, layer, lengths);
  kernels::activate_gate(kernels::Activation::silu, gate_, attended_.data());
  attended_.swap(gate_);
  return true;
}

// attended_ from channels in fused_, keys and queries in q_ and steps in up_.
void BlockRunner::scan_tokens(const BlockValues& weights, uint32_t layer, std::span<const uint32_t> lengths) {
  const Recurrence& r = architecture_.recurrence;
  const size_t channels = r.value_columns(), dim = r.key_dim, all = r.step_rank + 2 * dim;
  const std::vector<float>&skip = weights[Slot::skip], &logarithms = weights[Slot::decay];
  std::vector<float> rates(logarithms.size()), decay(logarithms.size());
  for (size_t i = 0; i < rates.size(); ++i) rates[i] = static_cast<float>(-exp2_of(logarithms[i] / kLn2));
  attended_.resize(tokens_ * channels);
  size_t token = 0;
  for (const uint32_t length : lengths) {
    std::vector<float>& states = cached_ != nullptr ? cached_->states[layer] : v_;
    if (cached_ == nullptr) states.clear();
    states.resize(channels * dim);
    for (const size_t end = token + length; token < end; ++token) {
      const float *const x = fused_.data() + token * channels, *const k = q_.data() + token * all + r.step_rank;
      float* const steps = up_.data() + token * channels;
      for (size_t i = 0; i < channels; ++i) steps[i] = static_cast<float>(softplus(steps[i]));
      for (size_t i = 0; i < decay.size(); ++i) decay[i] = rates[i] * steps[i / dim];
      kernels::exponentials(decay, 0, decay.data());
      for (size_t i = 0; i < channels; ++i) {
        float *const state = states.data() + i * dim, *const kept = decay.data() + i * dim;
        float sum = 0;
        for (size_t j = 0; j < dim; ++j) {
          state[j] = kept[j] * state[j] + steps[i] * x[i] * k[j];
          sum += state[j] * k[dim + j];
        }
        attended_[token * channels + i] = sum + skip[i] * x[i];
      }
    }
  }
}

}  // namespace wasmquant::model
