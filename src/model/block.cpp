// The steps of a block: norms, products, rotary embedding, attention, activation.
#include "model/block.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "kernels/matmul.h"
#include "model/experts/learned_activation.h"
#include "model/steps/norm.h"
#include "model/steps/streams.h"
#include "numeric/exponential.h"

namespace wasmquant::model {

BlockRunner::BlockRunner(const Architecture& architecture, size_t longest)
    : architecture_(architecture),
      longest_(longest),
      table_(architecture.rope, architecture.rope_dim(), longest),
      sliding_table_(architecture.sliding_rope, architecture.rope_dim(), longest) {
  const Rope& rope = architecture.rope;
  if (rope.scaling == Rope::Scaling::longrope && static_cast<double>(longest) > rope.original_positions)
    long_table_ = RotaryTable(rope, architecture.rope_dim(), longest, true);
  if (architecture.has_slopes && architecture.is_encoder) bias_ = RelativeBias(architecture, longest);
}

Status BlockRunner::rotate_down_input(std::vector<float>& x) {
  const size_t columns = architecture_.intermediate;
  if (hadamard_.size() != columns) {
    TRY(hadamard, Hadamard::create(columns, columns, std::nullopt));
    hadamard_ = std::move(hadamard);
    row_.resize(columns);
  }
  for (size_t at = 0; at < tokens_ * columns; at += columns) {
    std::copy_n(x.begin() + static_cast<ptrdiff_t>(at), columns, row_.begin());
    hadamard_.multiply(row_.data());
    for (size_t j = 0; j < columns; ++j) x[at + j] = static_cast<float>(row_[j]);
  }
  return {};
}

namespace {

/// To each row of y.
void add_bias(const std::vector<float>& bias, std::vector<float>& y) noexcept {
  if (bias.empty()) return;
  for (size_t i = 0; i < y.size(); ++i) y[i] += bias[i % bias.size()];
}

}  // namespace

void BlockRunner::linear(const std::vector<float>& x, const BlockValues& weights, Slot weight, Slot bias, size_t in,
                         size_t out, std::vector<float>& y) {
  linear(x, weights, weight, in, out, y);
  add_bias(weights[bias], y);
}

void BlockRunner::linear(const std::vector<float>& x, const BlockValues& weights, Slot weight, size_t in, size_t out,
                         std::vector<float>& y) {
  const InputPrecision precision = weights.inputs[static_cast<size_t>(weight)];
  const float* inputs = x.data();
  if (precision != InputPrecision::float32) {
    quantized_.assign(x.begin(), x.begin() + static_cast<ptrdiff_t>(tokens_ * in));
    quantize_inputs(precision, quantized_, in);
    inputs = quantized_.data();
  }
  y.resize(tokens_ * out);
  if (const std::vector<float>& packed = weights.packed[static_cast<size_t>(weight)]; !packed.empty()) {
    for (size_t row = 0; row < tokens_; ++row)
      kernels::multiply_row(inputs + row * in, packed.data(), in, out, y.data() + row * out);
  } else {
    product_.resize(std::max(product_.size(), kernels::matmul_workspace(tokens_, out, in)));
    kernels::matmul({inputs, in, 1}, {weights[weight].data(), in, 1}, in, tokens_, out, kernels::Update::set,
                    kernels::Region::all, y.data(), out, product_.data());
  }
  const auto number = static_cast<size_t>(weight);
  if (number >= kBlockMatrices || architecture_.factors.empty() || architecture_.factors[number] == 1) return;
  for (float& value : y) value *= architecture_.factors[number];
}

void BlockRunner::apply_norm(const BlockValues& weights, Slot slot, const float* x, size_t columns,
                             std::vector<float>& y) const {
  const Architecture& a = architecture_;
  normalize({a.norms.epsilon, a.norms.plus_one, a.norms.subtract_mean}, weights[slot], weights[norm_bias(slot)], x,
            y.size() / columns, columns, y.data());
}

// q_ has the rows of all three.
void BlockRunner::split_fused_queries() {
  const Architecture& a = architecture_;
  const size_t queries = a.query_columns(), keys = a.key_columns(), all = queries + 2 * keys;
  const bool is_in_order = fused_queries(a) == Fused::in_order;
  const size_t groups = is_in_order ? 1 : a.kv_heads, of_queries = queries / groups, of_keys = keys / groups;
  fused_.swap(q_);
  q_.resize(tokens_ * queries);
  k_.resize(tokens_ * keys);
  v_.resize(tokens_ * keys);
  for (size_t token = 0; token < tokens_; ++token)
    for (size_t group = 0; group < groups; ++group) {
      const float* const from = fused_.data() + token * all + group * (of_queries + 2 * of_keys);
      std::copy_n(from, of_queries, q_.data() + token * queries + group * of_queries);
      std::copy_n(from + of_queries, of_keys, k_.data() + token * keys + group * of_keys);
      std::copy_n(from + of_queries + of_keys, of_keys, v_.data() + token * keys + group * of_keys);
    }
}

void BlockRunner::split_gates() {
  const size_t dim = architecture_.head_dim, heads = tokens_ * architecture_.heads;
  fused_.swap(q_);
  q_.resize(heads * dim);
  gate_.resize(heads * dim);
  for (size_t head = 0; head < heads; ++head) {
    std::copy_n(fused_.data() + 2 * head * dim, dim, q_.data() + head * dim);
    std::copy_n(fused_.data() + (2 * head + 1) * dim, dim, gate_.data() + head * dim);
  }
}

void BlockRunner::rotate(uint32_t layer, std::span<const uint32_t> lengths, size_t heads, size_t stride,
                         float* x) const {
  const Architecture& a = architecture_;
  if (!a.is_rotated[layer]) return;
  const size_t past = cached_ != nullptr ? cached_->past : 0;
  for (const uint32_t length : lengths) {
    const size_t whole = cached_ != nullptr ? longest_ : length;
    const bool is_long = !long_table_.empty() && static_cast<double>(whole) > a.rope.original_positions;
    const RotaryTable& table = a.is_sliding[layer] ? sliding_table_ : is_long ? long_table_ : table_;
    for (size_t i = 0; i < length * heads; ++i, x += stride) table.apply(x, past + i / heads);
  }
}

void BlockRunner::position(const BlockValues& weights, uint32_t layer, Slot norm, size_t heads,
                           std::span<const uint32_t> lengths, std::vector<float>& x) {
  const Architecture& a = architecture_;
  const size_t dim = a.head_dim;
  const bool has_norm = a.names.has(norm == Slot::q_norm ? ModelPart::q_norm : ModelPart::k_norm) &&
                        (!a.norms.behind_rope || a.is_rotated[layer]);
  const auto apply = [&] { apply_norm(weights, norm, x.data(), a.norms.over_heads ? heads * dim : dim, x); };
  if (has_norm && !a.norms.behind_rope) apply();
  rotate(layer, lengths, heads, dim, x.data());
  if (has_norm && a.norms.behind_rope) apply();
  if (norm == Slot::q_norm) sharpen(layer, lengths, x);
}

void BlockRunner::sharpen(uint32_t layer, std::span<const uint32_t> lengths, std::vector<float>& x) const {
  const QueryGrowth& growth = architecture_.query_growth;
  if (growth.rate == 0 || (growth.is_unrotated && architecture_.is_rotated[layer])) return;
  const size_t first = growth.is_unrotated ? 1 : 0;
  const size_t past = cached_ != nullptr ? cached_->past : 0, columns = architecture_.query_columns();
  float* row = x.data();
  for (const uint32_t length : lengths)
    for (size_t i = 0; i < length; ++i, row += columns) {
      const double spans = std::floor(static_cast<double>(past + i + first) / growth.span);
      const auto factor = static_cast<float>(1 + growth.rate * log2_of(1 + spans) * kLn2);
      for (size_t j = 0; j < columns; ++j) row[j] *= factor;
    }
}

Status BlockRunner::project(const BlockValues& weights, uint32_t layer, std::span<const uint32_t> lengths,
                            InputSink* sink) {
  const Architecture& a = architecture_;
  const size_t queries = a.query_columns(), keys = a.key_columns();
  const bool is_fused = fused_queries(a) != Fused::none;
  const size_t gates = a.gated_attention ? queries : 0;
  linear(normed_, weights, Slot::q, Slot::q_bias, a.hidden, is_fused ? queries + 2 * keys : queries + gates, q_);
  if (a.gated_attention) split_gates();
  if (is_fused) {
    split_fused_queries();
  } else if (a.names.has(ModelPart::k)) {
    linear(normed_, weights, Slot::k, Slot::k_bias, a.hidden, keys, k_);
    if (a.names.has(ModelPart::v))
      linear(normed_, weights, Slot::v, Slot::v_bias, a.hidden, keys, v_);
    else
      v_ = k_;
  }
  if (a.scales.qkv_clip > 0)
    for (std::vector<float>* const values : {&q_, &k_, &v_})
      for (float& value : *values) value = std::clamp(value, -a.scales.qkv_clip, a.scales.qkv_clip);
  position(weights, layer, Slot::q_norm, a.heads, lengths, q_);
  if (keys_of(a, layer) != layer) return {};
  if (sink != nullptr) {
    TRY_VOID(sink->accept_cached(layer, CachedValue::projected_key, k_, keys));
    TRY_VOID(sink->accept_cached(layer, CachedValue::projected_value, v_, keys));
  }
  if (a.names.has(ModelPart::v_norm))
    normalize({a.norms.epsilon}, {}, {}, v_.data(), v_.size() / a.head_dim, a.head_dim, v_.data());
  if (sink != nullptr) TRY_VOID(sink->accept_cached(layer, CachedValue::value, v_, keys));
  position(weights, layer, Slot::k_norm, a.kv_heads, lengths, k_);
  if (sink != nullptr) TRY_VOID(sink->accept_cached(layer, CachedValue::key, k_, keys));
  return {};
}

// attended_ from normed_.
Result<bool> BlockRunner::attend_all(const BlockValues& weights, uint32_t layer, std::span<const uint32_t> lengths,
                                     InputSink* sink) {
  const Architecture& a = architecture_;
  const Mixer mixer = mixer_of(a, layer);
  if (a.names.has(ModelPart::encoded_k)) return attend_encoded(weights, layer, lengths, sink);
  if (mixer == Mixer::selective) return scan(weights, layer, lengths, sink);
  if (mixer == Mixer::both) {
    TRY(goes_on, add_state(weights, layer, lengths, sink));
    if (!goes_on) return false;
  } else if (mixer != Mixer::attention) {
    mixer == Mixer::convolution ? convolve(weights, layer, lengths) : run_recurrence(weights, layer, lengths);
    return true;
  }
  if (a.latent.rank > 0) {
    TRY(goes_on, project_latent(weights, layer, lengths, sink));
    if (!goes_on) return false;
  } else {
    TRY_VOID(project(weights, layer, lengths, sink));
  }
  attended_.resize(tokens_ * a.attended_columns());
  share(layer);
  attend_heads(weights, layer, lengths);
  for (size_t i = 0; i < attended_.size() && a.gated_attention; ++i) attended_[i] *= sigmoid_of(gate_[i]);
  return true;
}

void BlockRunner::share(uint32_t layer) {
  const uint32_t from = keys_of(architecture_, layer);
  if (cached_ != nullptr || shared_ == nullptr) return;  // those of all layers are there
  if (from != layer) {
    k_ = shared_->keys[from];
    v_ = shared_->values[from];
  } else if (shares_keys(architecture_, layer)) {
    shared_->keys.resize(architecture_.layers);
    shared_->values.resize(architecture_.layers);
    shared_->keys[layer] = k_;
    shared_->values[layer] = v_;
  }
}

// attended_ from q_, k_ and v_.
void BlockRunner::attend_heads(const BlockValues& weights, uint32_t layer, std::span<const uint32_t> lengths) {
  const Architecture& a = architecture_;
  const bool is_sliding = a.is_sliding[layer];
  if (const std::vector<float>& table = weights[Slot::relative_bias];
      !table.empty() && (layer == first_of_stack(a, layer) || a.relative.has_own_tables))
    bias_ = RelativeBias(a, table, longest_);
  const size_t queries = a.query_columns(), keys = a.key_columns(), values = a.value_columns();
  if (cached_ != nullptr) {
    const uint32_t from = keys_of(a, layer);
    std::vector<float>&all_keys = cached_->keys[from], &all_values = cached_->values[from];
    if (from == layer) {
      all_keys.insert(all_keys.end(), k_.begin(), k_.begin() + static_cast<ptrdiff_t>(tokens_ * keys));
      all_values.insert(all_values.end(), v_.begin(), v_.begin() + static_cast<ptrdiff_t>(tokens_ * values));
    }
    attend(a, is_sliding, q_.data(), all_keys.data(), all_values.data(), weights[Slot::sinks], bias_, cached_->past,
           cached_->past + tokens_, attention_, attended_.data());
    return;
  }
  size_t at = 0;
  for (const uint32_t length : lengths) {
    attend(a, is_sliding, q_.data() + at * queries, k_.data() + at * keys, v_.data() + at * values,
           weights[Slot::sinks], bias_, 0, length, attention_, attended_.data() + at * a.attended_columns());
    at += length;
  }
}

Status BlockRunner::run_post_normed(const BlockValues& weights, uint32_t layer, std::span<const uint32_t> lengths,
                                    std::span<float> x) {
  const Architecture& a = architecture_;
  const auto add_and_norm = [&](Slot norm) {
    for (size_t i = 0; i < x.size(); ++i) x[i] += normed_[i];
    normalize({a.norms.epsilon, a.norms.plus_one, a.norms.subtract_mean}, weights[norm], weights[norm_bias(norm)],
              x.data(), tokens_, a.hidden, x.data());
  };
  normed_.assign(x.begin(), x.end());
  TRY_VOID(attend_all(weights, layer, lengths, nullptr));
  linear(attended_, weights, Slot::o, Slot::o_bias, a.attended_columns(), a.hidden, normed_);
  add_and_norm(Slot::attention_post_norm);
  normed_.assign(x.begin(), x.end());
  TRY_VOID(run_gate(weights));
  linear(gate_, weights, Slot::down, Slot::down_bias, a.intermediate, a.hidden, normed_);
  add_and_norm(Slot::feed_forward_post_norm);
  return {};
}

// Shows the next input; false if the sink ends the run there.
Result<bool> BlockRunner::show(uint32_t layer, LinearInput input, std::span<const float> values, size_t columns,
                               std::span<const float> x, InputSink* sink, BlockState* state) {
  if (sink == nullptr) return true;
  TRY_VOID(sink->accept(layer, input, values, columns));
  if (!sink->ends_at(input)) return true;
  if (state == nullptr) return false;
  state->at = input;
  state->input.assign(values.begin(), values.end());
  if (input >= LinearInput::feed_forward) state->stream.assign(x.begin(), x.end());
  return false;
}

BlockRunner::Gate BlockRunner::gate_of(ModelPart gate, ModelPart fused) const noexcept {
  const ModelNames& names = architecture_.names;
  return names.has(fused) ? Gate::fused : names.has(gate) ? Gate::apart : Gate::none;
}

// gate_ and up_ from normed_; without a gate, up's product is in gate_, and up_ is 1. Gate::fused: the gate's matrix has the rows of both.
void BlockRunner::run_gated(const BlockValues& weights, Gate gate, size_t wide) {
  const size_t hidden = architecture_.hidden;
  if (gate == Gate::none) {
    linear(normed_, weights, Slot::up, hidden, wide, gate_);
    up_.assign(gate_.size(), 1.0f);
  } else if (gate == Gate::fused) {
    linear(normed_, weights, Slot::gate, hidden, 2 * wide, fused_);
    gate_.resize(tokens_ * wide);
    up_.resize(tokens_ * wide);
    for (size_t token = 0; token < tokens_; ++token) {
      std::copy_n(fused_.data() + 2 * token * wide, wide, gate_.data() + token * wide);
      std::copy_n(fused_.data() + (2 * token + 1) * wide, wide, up_.data() + token * wide);
    }
  } else {
    linear(normed_, weights, Slot::gate, hidden, wide, gate_);
    linear(normed_, weights, Slot::up, hidden, wide, up_);
  }
}

// gate_ from normed_.
Status BlockRunner::run_gate(const BlockValues& weights) {
  const Architecture& a = architecture_;
  const size_t wide = a.intermediate;
  const Gate gate = gate_of(ModelPart::gate, ModelPart::gate_up);
  run_gated(weights, gate, wide);
  add_bias(weights[gate == Gate::none ? Slot::up_bias : Slot::gate_bias], gate_);
  if (gate != Gate::none) add_bias(weights[Slot::up_bias], up_);
  if (gate_limit_ > Streams::kNoLimit) limit_gate(gate_, wide, gate_limit_);
  if (a.names.has(ModelPart::activation))
    LearnedActivation{weights[Slot::activation_positive][0], weights[Slot::activation_negative][0],
                      weights[Slot::activation_slope][0], weights[Slot::activation_least][0]}
        .apply(gate_);
  else
    kernels::activate_gate(a.activation, gate_, up_.data());
  if (a.rotated_down_input) TRY_VOID(rotate_down_input(gate_));
  return {};
}

// What output_ adds.
void BlockRunner::add_to_x(const BlockValues& weights, Slot post_norm, std::span<float> x) {
  const Architecture& a = architecture_;
  if (!weights[post_norm].empty()) apply_norm(weights, post_norm, output_.data(), a.hidden, output_);
  if (a.scales.residual != 1)
    for (float& value : output_) value *= a.scales.residual;
  for (size_t i = 0; i < x.size(); ++i) x[i] += output_[i];
}

void BlockRunner::finish_attention(const BlockValues& weights, uint32_t layer, std::span<float> x) {
  const Architecture& a = architecture_;
  const Mixer mixer = mixer_of(a, layer);
  const bool has_low_rank = a.streams.low_rank > 0;
  if (has_low_rank) run_low_rank(weights, x);
  if (mixer != Mixer::none)
    linear(attended_, weights, Slot::o, Slot::o_bias, attended_.size() / tokens_, a.hidden, output_);
  for (size_t i = 0; i < x.size() && mixer == Mixer::both; ++i) output_[i] += added_[i];
  if (mixer != Mixer::none && !a.is_parallel) add_to_x(weights, Slot::attention_post_norm, x);
  constexpr float kHalfRoot = 0.70710678118654752440f;
  for (size_t i = 0; i < x.size() && has_low_rank; ++i) x[i] = (x[i] + low_rank_[i]) * kHalfRoot;
  normed_.assign(x.begin(), x.end());
  // Blocks with one norm show it to both.
  const bool has_own = a.names.has(ModelPart::feed_forward_norm);
  if (has_own || a.is_parallel)
    apply_norm(weights, has_own ? Slot::feed_forward_norm : Slot::input_norm, normed_.data(), a.hidden, normed_);
  if (a.is_parallel) add_to_x(weights, Slot::attention_post_norm, x);
}

Status BlockRunner::run(const BlockValues& weights, uint32_t layer, std::span<const uint32_t> lengths,
                        std::span<float> x, InputSink* sink, BlockState* state) {
  const Architecture& a = architecture_;
  tokens_ = x.size() / a.hidden / a.streams.count;
  gate_limit_ = a.streams.gate_limits.empty() ? Streams::kNoLimit : a.streams.gate_limits[layer];
  if (a.streams.count > 1) return run_streams(weights, layer, lengths, x, sink, state);
  if (norms_sums(a)) return run_post_normed(weights, layer, lengths, x);
  const bool is_behind = state != nullptr && !state->input.empty() && state->at >= LinearInput::layer_input;
  if (!is_behind) {
    TRY(is_whole, run_stream(weights, layer, lengths, x, sink, state));
    if (!is_whole || joins_experts(a, layer)) return {};
  }
  return add_layer_input(weights, layer, x, sink, state);
}

Result<bool> BlockRunner::run_stream(const BlockValues& weights, uint32_t layer, std::span<const uint32_t> lengths,
                                     std::span<float> x, InputSink* sink, BlockState* state) {
  const Architecture& a = architecture_;
  const size_t hidden = a.hidden;
  const auto reach = [&](LinearInput input, const std::vector<float>& values, size_t columns) {
    return show(layer, input, {values.data(), tokens_ * columns}, columns, x, sink, state);
  };
  // The same for the input of a state; the stream of early ones is x.
  const auto resume = [&](std::vector<float>& values) {
    values.swap(state->input);
    state->input.clear();
    if (state->at >= LinearInput::feed_forward) std::copy(state->stream.begin(), state->stream.end(), x.begin());
  };
  const bool resumes = state != nullptr && !state->input.empty();
  const LinearInput from = resumes ? state->at : LinearInput::attention;
  const auto is_from = [&](LinearInput input) { return resumes && from == input; };
  const bool mixes = mixer_of(a, layer) != Mixer::none;

  if (is_from(LinearInput::attention)) {
    resume(normed_);
  } else if (!resumes && mixes) {
    normed_.assign(x.begin(), x.end());
    if (norms_input(a, layer)) apply_norm(weights, Slot::input_norm, x.data(), hidden, normed_);
    TRY(goes_on, reach(LinearInput::attention, normed_, hidden));
    if (!goes_on) return false;
  }
  if (is_from(LinearInput::attention_output)) {
    resume(attended_);
  } else if (from < LinearInput::attention_output && mixes) {
    TRY(is_whole, attend_all(weights, layer, lengths, sink));
    // A run that ended inside attention resumes before it.
    if (!is_whole && state != nullptr) *state = {LinearInput::attention, normed_, {}};
    if (!is_whole) return false;
    TRY(goes_on, reach(LinearInput::attention_output, attended_, attended_.size() / tokens_));
    if (!goes_on && state != nullptr && mixer_of(a, layer) == Mixer::both)
      *state = {LinearInput::attention, normed_, {}};
    if (!goes_on) return false;
  }
  if (is_from(LinearInput::feed_forward)) {
    resume(normed_);
  } else if (from < LinearInput::feed_forward) {
    finish_attention(weights, layer, x);
    if (!feeds_forward(a, layer)) return true;
    TRY(goes_on, reach(LinearInput::feed_forward, normed_, hidden));
    if (!goes_on) return false;
  }
  if (has_experts(a, layer)) return send_to_experts(weights, layer, x, sink, state);
  if (is_from(LinearInput::feed_forward_output)) {
    resume(gate_);
  } else {
    TRY_VOID(run_gate(weights));
    TRY(goes_on, reach(LinearInput::feed_forward_output, gate_, a.intermediate));
    if (!goes_on) return false;
  }
  linear(gate_, weights, Slot::down, Slot::down_bias, a.intermediate, hidden, output_);
  add_to_x(weights, Slot::feed_forward_post_norm, x);
  return true;
}

}  // namespace wasmquant::model
