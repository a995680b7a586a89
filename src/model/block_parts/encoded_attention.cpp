// Attention of a decoder to what its encoder gave (A. Vaswani et al. 2017): queries are of the block's own tokens, keys and values of those of
// the encoder, all of which every token sees, without a bias by distance. Source: transformers, models/t5/modeling_t5.py.
#include <algorithm>
#include <utility>

#include "model/block.h"

namespace wasmquant::model {

Result<bool> BlockRunner::attend_encoded(const BlockValues& weights, uint32_t layer, std::span<const uint32_t> lengths,
                                         InputSink* sink) {
  const Architecture& a = architecture_;
  const size_t keys = a.key_columns(), values = a.value_columns();
  linear(normed_, weights, Slot::q, Slot::q_bias, a.hidden, a.query_columns(), q_);
  TRY(goes_on, show(layer, LinearInput::encoded, encoded_.states, a.hidden, {}, sink, nullptr));
  if (!goes_on) return false;
  project_encoded(weights, layer);
  attended_.resize(tokens_ * a.attended_columns());
  const float *q = q_.data(), *k = k_.data(), *v = v_.data();
  float* y = attended_.data();
  for (size_t sequence = 0; sequence < lengths.size(); ++sequence) {
    const size_t seen = encoded_.lengths[sequence];
    // As the last tokens of a sequence as long as the encoder's.
    for (size_t left = lengths[sequence], count = 0; left > 0; left -= count) {
      count = std::min(left, seen);
      attend(a, false, q, k, v, {}, {}, seen - count, seen, attention_, y);
      q += count * a.query_columns();
      y += count * a.attended_columns();
    }
    k += seen * keys;
    v += seen * values;
  }
  return true;
}

// k_ and v_. Those of a sequence that is continued stay.
void BlockRunner::project_encoded(const BlockValues& weights, uint32_t layer) {
  const Architecture& a = architecture_;
  const bool is_known = cached_ != nullptr && !cached_->keys[layer].empty();
  if (is_known) {
    k_ = cached_->keys[layer];
    v_ = cached_->values[layer];
    return;
  }
  const std::vector<float> states(encoded_.states.begin(), encoded_.states.end());
  const size_t tokens = std::exchange(tokens_, states.size() / a.hidden);
  linear(states, weights, Slot::encoded_k, Slot::encoded_k_bias, a.hidden, a.key_columns(), k_);
  linear(states, weights, Slot::encoded_v, Slot::encoded_v_bias, a.hidden, a.value_columns(), v_);
  tokens_ = tokens;
  if (cached_ == nullptr) return;
  cached_->keys[layer] = k_;
  cached_->values[layer] = v_;
}

}  // namespace wasmquant::model
