// Layers that mix tokens by a recurrence. Each head has a state S [key_dim, value_dim]; a token with query q, key k, value v:
//   S = decay S;   S += k (strength (v - S^T k)) or, without correction, k (strength v);   y = S^T q,   decay = exp(-exp(A) step)
// q, k and v have gone through a short convolution and silu.   step = softplus(projected + bias)
// Gated delta nets (S. Yang et al. 2024) correct, strength = sigmoid(projected), q and k have length 1 and 1 / sqrt(key_dim):
//   layer = W (norm(y of a head) silu(gate))
// Mamba 2 (T. Dao, A. Gu 2024) does not, strength = step:   layer = W norm((y + skip v) silu(gate))
// or W (norm(y + skip v) silu(gate)), or without a norm. Where attention is the other part of the layer (Falcon-H1), both are added.
// Source: transformers, models/qwen3_next/modeling_qwen3_next.py, models/mamba2/modeling_mamba2.py, models/falcon_h1/modeling_falcon_h1.py.
#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "kernels/exponential.h"
#include "model/block.h"
#include "model/steps/norm.h"
#include "numeric/exponential.h"
#include "numeric/softplus.h"

namespace wasmquant::model {
namespace {

double sigmoid(double x) noexcept { return 1 / (1 + exp2_of(-x / kLn2)); }

/// Rows of one token: those of all heads. `S`: of all heads, too.
struct Token {
  const float *q, *k, *v;
  const float *decay, *strength;  // by head
};

void recur(const Recurrence& r, bool corrects, const Token& token, std::vector<float>& change, float* S, float* y) {
  const size_t dim = r.key_dim, wide = r.value_dim, group = r.heads / r.key_heads;
  for (size_t head = 0; head < r.heads; ++head, S += dim * wide, y += wide) {
    const float *const q = token.q + head / group * dim, *const k = token.k + head / group * dim;
    change.assign(wide, 0.0f);
    for (size_t i = 0; i < dim; ++i)
      for (size_t j = 0; j < wide; ++j) {
        float& value = S[i * wide + j];
        value *= token.decay[head];
        if (corrects) change[j] -= value * k[i];
      }
    for (size_t j = 0; j < wide; ++j) {
      change[j] = (token.v[head * wide + j] + change[j]) * token.strength[head];
      y[j] = 0;
    }
    for (size_t i = 0; i < dim; ++i)
      for (size_t j = 0; j < wide; ++j) {
        float& value = S[i * wide + j];
        value += k[i] * change[j];
        y[j] += value * q[i];
      }
  }
}

/// Rows of `dim` to length `factor`.
void set_length(size_t dim, double factor, size_t rows, float* x) noexcept {
  constexpr double kEpsilon = 1e-6;
  for (size_t row = 0; row < rows; ++row, x += dim) {
    double sum = 0;
    for (size_t i = 0; i < dim; ++i) sum += double{x[i]} * x[i];
    const auto scale = static_cast<float>(factor / std::sqrt(sum + kEpsilon));
    for (size_t i = 0; i < dim; ++i) x[i] *= scale;
  }
}

/// Rows of these parts, each by the factor that the architecture has for it.
void scale_parts(const List<float>& factors, std::initializer_list<size_t> parts, std::vector<float>& rows) noexcept {
  if (factors.empty()) return;
  for (float* x = rows.data(); x < rows.data() + rows.size();) {
    const float* factor = factors.data() + kBlockMatrices;
    for (const size_t columns : parts) {
      for (float* const end = x + columns; x < end; ++x) *x *= *factor;
      ++factor;
    }
  }
}

}  // namespace

// Rows of what is convolved in q_, gates in gate_, steps in up_ and of delta nets strengths in output_.
void BlockRunner::project_states(const BlockValues& weights, uint32_t layer) {
  const Recurrence& r = architecture_.recurrence;
  const size_t keys = r.key_columns(), values = r.value_columns(), heads = r.heads, hidden = architecture_.hidden;
  const size_t convolved = 2 * keys + values;
  const bool is_delta = mixer_of(architecture_, layer) == Mixer::delta;
  const auto project = [&](Slot slot, Slot bias, size_t columns, std::vector<float>& y) {
    linear(normed_, weights, slot, bias, hidden, columns, y);
  };
  if (is_delta && architecture_.names.has(ModelPart::mixer_gate)) {
    project(Slot::q, Slot::q_bias, convolved, q_);
    project(Slot::k, Slot::k_bias, heads, up_);
    project(Slot::v, Slot::v_bias, values, gate_);
    project(Slot::strength, Slot::strength_bias, heads, output_);
    return;
  }
  const size_t all = convolved + values + (is_delta ? 0 : heads);
  if (mixer_of(architecture_, layer) == Mixer::both)
    project(Slot::state_in, Slot::state_in_bias, all, fused_);
  else
    project(Slot::q, Slot::q_bias, all, fused_);
  if (!is_delta) scale_parts(architecture_.factors, {values, values, keys, keys, heads}, fused_);
  q_.resize(tokens_ * convolved);
  gate_.resize(tokens_ * values);
  up_.resize(tokens_ * heads);
  output_.resize(tokens_ * heads);
  if (is_delta) project(Slot::k, Slot::k_bias, 2 * heads, v_);
  const size_t groups = is_delta ? r.key_heads : 1, of_keys = keys / groups, of_values = values / groups;
  for (size_t token = 0; token < tokens_; ++token) {
    const float* from = fused_.data() + token * all;
    const auto take = [&from](size_t count, float* to) {
      std::copy_n(from, count, to);
      from += count;
    };
    float *const to = q_.data() + token * convolved, *const gates = gate_.data() + token * values;
    if (!is_delta) {
      take(values, gates);
      take(convolved, to);
      take(heads, up_.data() + token * heads);
      continue;
    }
    for (size_t group = 0; group < groups; ++group) {
      take(of_keys, to + group * of_keys);
      take(of_keys, to + keys + group * of_keys);
      take(of_values, to + 2 * keys + group * of_values);
      take(of_values, gates + group * of_values);
    }
    for (size_t head = 0, each = heads / groups; head < heads; ++head) {
      const float* const pair = v_.data() + token * 2 * heads + head / each * 2 * each + head % each;
      output_[token * heads + head] = pair[0];
      up_[token * heads + head] = pair[each];
    }
  }
}

void BlockRunner::run_recurrence(const BlockValues& weights, uint32_t layer, std::span<const uint32_t> lengths) {
  const Recurrence& r = architecture_.recurrence;
  const size_t keys = r.key_columns(), values = r.value_columns(), heads = r.heads, convolved = 2 * keys + values;
  const bool is_delta = mixer_of(architecture_, layer) == Mixer::delta;
  project_states(weights, layer);
  convolve_channels(weights, layer, lengths, convolved, fused_);
  q_.assign(fused_.size(), 1.0f);
  kernels::activate_gate(kernels::Activation::silu, fused_, q_.data());
  // Of Mamba 2 values come first.
  const size_t at_v = is_delta ? 2 * keys : 0, at_k = is_delta ? keys : values, at_q = is_delta ? 0 : values + keys;
  for (size_t token = 0; token < tokens_ && is_delta; ++token) {
    set_length(r.key_dim, 1 / std::sqrt(static_cast<double>(r.key_dim)), r.key_heads,
               fused_.data() + token * convolved);
    set_length(r.key_dim, 1, r.key_heads, fused_.data() + token * convolved + keys);
  }
  for (size_t i = 0; i < up_.size(); ++i) {
    const double step =
        std::clamp(softplus(double{up_[i]} + weights[Slot::step_bias][i % heads]), r.least_step, r.largest_step);
    output_[i] = static_cast<float>(is_delta ? sigmoid(output_[i]) : step);
    up_[i] = static_cast<float>(exp2_of(-exp2_of(weights[Slot::decay][i % heads] / kLn2) * step / kLn2));
  }
  attended_.resize(tokens_ * values);
  size_t token = 0;
  for (const uint32_t length : lengths) {
    std::vector<float>& state = cached_ != nullptr ? cached_->states[layer] : v_;
    if (cached_ == nullptr) state.clear();
    state.resize(heads * size_t{r.key_dim} * r.value_dim);
    for (const size_t end = token + length; token < end; ++token) {
      const float* const row = fused_.data() + token * convolved;
      recur(r, is_delta,
            {row + at_q, row + at_k, row + at_v, up_.data() + token * heads, output_.data() + token * heads}, change_,
            state.data(), attended_.data() + token * values);
    }
  }
  gate_states(weights, at_v);
}

// attended_ to what the layer gives.
void BlockRunner::gate_states(const BlockValues& weights, size_t at_v) {
  const Recurrence& r = architecture_.recurrence;
  const size_t values = r.value_columns(), convolved = 2 * r.key_columns() + values;
  const std::vector<float>&skip = weights[Slot::skip], &scale = weights[Slot::mixer_norm];
  for (size_t i = 0; i < attended_.size() && !skip.empty(); ++i)
    attended_[i] += skip[i % values / r.value_dim] * fused_[i / values * convolved + at_v + i % values];
  const auto norm = [&](std::vector<float>& y) {
    if (scale.empty()) return;
    normalize({architecture_.norms.epsilon}, {}, {}, y.data(), y.size() / r.norm_columns, r.norm_columns, y.data());
    for (size_t i = 0; i < y.size(); ++i) y[i] *= scale[i % scale.size()];
  };
  if (r.norms_first) norm(attended_);
  kernels::activate_gate(kernels::Activation::silu, gate_, attended_.data());
  if (!r.norms_first) norm(gate_);
  attended_.swap(gate_);
}

Result<bool> BlockRunner::add_state(const BlockValues& weights, uint32_t layer, std::span<const uint32_t> lengths,
                                    InputSink* sink) {
  const size_t values = architecture_.recurrence.value_columns();
  run_recurrence(weights, layer, lengths);
  TRY(goes_on, show(layer, LinearInput::state_output, attended_, values, {}, sink, nullptr));
  if (goes_on) linear(attended_, weights, Slot::state_out, Slot::state_out_bias, values, architecture_.hidden, added_);
  return goes_on;
}

}  // namespace wasmquant::model
