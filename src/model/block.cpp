// The steps of a block: norms, products, rotary embedding, attention, activation.
#include "model/block.h"

#include <algorithm>

#include "kernels/matmul.h"
#include "model/norm.h"

namespace wasmquant::model {

BlockRunner::BlockRunner(const Architecture& architecture, size_t longest)
    : architecture_(architecture),
      table_(architecture.rope, architecture.head_dim, longest),
      sliding_table_(architecture.sliding_rope, architecture.head_dim, longest) {}

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
    return add_bias(weights[bias], y);
  }
  product_.resize(std::max(product_.size(), kernels::matmul_workspace(tokens_, out, in)));
  kernels::matmul({inputs, in, 1}, {weights[weight].data(), in, 1}, in, tokens_, out, kernels::Update::set,
                  kernels::Region::all, y.data(), out, product_.data());
  add_bias(weights[bias], y);
}

void BlockRunner::apply_rope(std::vector<float>& x, size_t heads, const std::vector<float>& norm,
                             const RotaryTable& table, std::span<const uint32_t> lengths) {
  const size_t dim = architecture_.head_dim;
  if (!norm.empty())
    normalize({architecture_.norm_epsilon, architecture_.norm_plus_one}, norm, x.data(), tokens_ * heads, x.data());
  float* head = x.data();
  const size_t past = cached_ != nullptr ? cached_->past : 0;
  for (const uint32_t length : lengths)
    for (size_t i = 0; i < length * heads; ++i, head += dim) table.apply(head, past + i / heads);
}

// attended_ from normed_.
Status BlockRunner::attend_all(const BlockValues& weights, uint32_t layer, std::span<const uint32_t> lengths,
                               InputSink* sink) {
  const Architecture& a = architecture_;
  const bool is_sliding = a.is_sliding[layer];
  const RotaryTable& table = is_sliding ? sliding_table_ : table_;
  const size_t queries = a.query_columns(), keys = a.key_columns();
  linear(normed_, weights, Slot::q, Slot::q_bias, a.hidden, queries, q_);
  linear(normed_, weights, Slot::k, Slot::k_bias, a.hidden, keys, k_);
  linear(normed_, weights, Slot::v, Slot::v_bias, a.hidden, keys, v_);
  if (sink != nullptr) {
    TRY_VOID(sink->accept_cached(layer, CachedValue::projected_key, k_, keys));
    TRY_VOID(sink->accept_cached(layer, CachedValue::value, v_, keys));
  }
  if (!a.is_encoder) {
    apply_rope(q_, a.heads, weights[Slot::q_norm], table, lengths);
    apply_rope(k_, a.kv_heads, weights[Slot::k_norm], table, lengths);
  }
  if (sink != nullptr) TRY_VOID(sink->accept_cached(layer, CachedValue::key, k_, keys));
  attended_.resize(q_.size());
  if (cached_ != nullptr) {
    std::vector<float>&all_keys = cached_->keys[layer], &all_values = cached_->values[layer];
    all_keys.insert(all_keys.end(), k_.begin(), k_.begin() + static_cast<ptrdiff_t>(tokens_ * keys));
    all_values.insert(all_values.end(), v_.begin(), v_.begin() + static_cast<ptrdiff_t>(tokens_ * keys));
    attend(a, is_sliding, q_.data(), all_keys.data(), all_values.data(), cached_->past, cached_->past + tokens_,
           attention_, attended_.data());
    return {};
  }
  size_t at = 0;
  for (const uint32_t length : lengths) {
    attend(a, is_sliding, q_.data() + at * queries, k_.data() + at * keys, v_.data() + at * keys, 0, length, attention_,
           attended_.data() + at * queries);
    at += length;
  }
  return {};
}

Status BlockRunner::run_encoder(const BlockValues& weights, uint32_t layer, std::span<const uint32_t> lengths,
                                std::span<float> x) {
  const Architecture& a = architecture_;
  const auto add_and_norm = [&](Slot norm, Slot bias) {
    for (size_t i = 0; i < x.size(); ++i) x[i] += normed_[i];
    center_and_normalize(a.norm_epsilon, weights[norm], weights[bias], x.data(), tokens_);
  };
  normed_.assign(x.begin(), x.end());
  TRY_VOID(attend_all(weights, layer, lengths, nullptr));
  linear(attended_, weights, Slot::o, Slot::o_bias, a.query_columns(), a.hidden, normed_);
  add_and_norm(Slot::attention_post_norm, Slot::attention_post_norm_bias);
  normed_.assign(x.begin(), x.end());
  linear(normed_, weights, Slot::up, Slot::up_bias, a.hidden, a.intermediate, gate_);
  up_.assign(gate_.size(), 1.0f);
  kernels::activate_gate(a.activation, gate_, up_.data());
  linear(gate_, weights, Slot::down, Slot::down_bias, a.intermediate, a.hidden, normed_);
  add_and_norm(Slot::feed_forward_post_norm, Slot::feed_forward_post_norm_bias);
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

Status BlockRunner::run_gate(const BlockValues& weights) {
  const Architecture& a = architecture_;
  linear(normed_, weights, Slot::gate, Slot::gate_bias, a.hidden, a.intermediate, gate_);
  linear(normed_, weights, Slot::up, Slot::up_bias, a.hidden, a.intermediate, up_);
  kernels::activate_gate(a.activation, gate_, up_.data());
  if (a.rotated_down_input) TRY_VOID(rotate_down_input(gate_));
  return {};
}

Status BlockRunner::run(const BlockValues& weights, uint32_t layer, std::span<const uint32_t> lengths,
                        std::span<float> x, InputSink* sink, BlockState* state) {
  const Architecture& a = architecture_;
  const Norm norm{a.norm_epsilon, a.norm_plus_one};
  const size_t hidden = a.hidden;
  tokens_ = x.size() / hidden;
  if (a.is_encoder) return run_encoder(weights, layer, lengths, x);
  const auto reach = [&](LinearInput input, const std::vector<float>& values, size_t columns) {
    return show(layer, input, {values.data(), tokens_ * columns}, columns, x, sink, state);
  };
  // The same for the input of a state; the stream of early ones is x.
  const auto resume = [&](std::vector<float>& values) {
    values.swap(state->input);
    state->input.clear();
    if (state->at >= LinearInput::feed_forward) std::copy(state->stream.begin(), state->stream.end(), x.begin());
  };
  const auto add_to_x = [&](std::vector<float>& y, Slot post_norm) {
    if (const std::vector<float>& weight = weights[post_norm]; !weight.empty())
      normalize(norm, weight, y.data(), tokens_, y.data());
    for (size_t i = 0; i < x.size(); ++i) x[i] += y[i];
  };
  const bool resumes = state != nullptr && !state->input.empty();
  const LinearInput from = resumes ? state->at : LinearInput::attention;
  const auto is_from = [&](LinearInput input) { return resumes && from == input; };

  if (is_from(LinearInput::attention)) {
    resume(normed_);
  } else if (!resumes) {
    normed_.resize(x.size());
    normalize(norm, weights[Slot::input_norm], x.data(), tokens_, normed_.data());
    TRY(goes_on, reach(LinearInput::attention, normed_, hidden));
    if (!goes_on) return {};
  }
  if (is_from(LinearInput::attention_output)) {
    resume(attended_);
  } else if (from < LinearInput::attention_output) {
    TRY_VOID(attend_all(weights, layer, lengths, sink));
    TRY(goes_on, reach(LinearInput::attention_output, attended_, a.query_columns()));
    if (!goes_on) return {};
  }
  if (is_from(LinearInput::feed_forward)) {
    resume(normed_);
  } else if (from < LinearInput::feed_forward) {
    linear(attended_, weights, Slot::o, Slot::o_bias, a.query_columns(), hidden, normed_);
    add_to_x(normed_, Slot::attention_post_norm);
    normalize(norm, weights[Slot::feed_forward_norm], x.data(), tokens_, normed_.data());
    TRY(goes_on, reach(LinearInput::feed_forward, normed_, hidden));
    if (!goes_on) return {};
  }
  if (is_from(LinearInput::feed_forward_output)) {
    resume(gate_);
  } else {
    TRY_VOID(run_gate(weights));
    TRY(goes_on, reach(LinearInput::feed_forward_output, gate_, a.intermediate));
    if (!goes_on) return {};
  }
  linear(gate_, weights, Slot::down, Slot::down_bias, a.intermediate, hidden, normed_);
  add_to_x(normed_, Slot::feed_forward_post_norm);
  return {};
}

}  // namespace wasmquant::model
