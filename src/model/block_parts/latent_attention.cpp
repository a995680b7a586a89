// Latent attention (DeepSeek-AI 2024, "DeepSeek-V2", 2.1): with a = norm of a token's narrow vectors, for each head
//   q = W_q a_q (or W_q x),   [plain key | value] = W_k a_kv,   key = [plain key | rotated part, the same in all heads]
// The last dimensions of q rotate. Keys and values are kept as all heads see them.
#include <algorithm>

#include "model/block.h"
#include "model/steps/norm.h"

namespace wasmquant::model {

// That of norms inside attention, for any config.json. Source: transformers, models/deepseek_v3/modeling_deepseek_v3.py.
constexpr Norm kInnerNorm{1e-6};

Result<bool> BlockRunner::project_latent(const BlockValues& weights, uint32_t layer, std::span<const uint32_t> lengths,
                                         InputSink* sink) {
  const Architecture& a = architecture_;
  const size_t rank = a.latent.rank, rope = a.latent.rope_dim, value = a.latent.value_dim, heads = a.heads;
  const size_t dim = a.head_dim, plain = dim - rope, both = plain + value;
  const size_t narrow = a.latent.query_rank;
  linear(normed_, weights, Slot::q, Slot::q_bias, a.hidden, narrow > 0 ? narrow : a.query_columns(), q_);
  if (narrow > 0) {
    normalize(kInnerNorm, weights[Slot::q_norm], {}, q_.data(), tokens_, narrow, q_.data());
    fused_.swap(q_);
    TRY(goes_on, show(layer, LinearInput::latent_query, fused_, narrow, {}, sink, nullptr));
    if (!goes_on) return false;
    linear(fused_, weights, Slot::q_b, Slot::q_b_bias, narrow, a.query_columns(), q_);
  }
  rotate(layer, lengths, heads, dim, q_.data() + plain);
  sharpen(layer, lengths, q_);

  linear(normed_, weights, Slot::k, Slot::k_bias, a.hidden, rank + rope, fused_);
  rotate(layer, lengths, 1, rank + rope, fused_.data() + rank);
  output_.resize(tokens_ * rank);
  for (size_t token = 0; token < tokens_; ++token)
    normalize(kInnerNorm, weights[Slot::k_norm], {}, fused_.data() + token * (rank + rope), 1, rank,
              output_.data() + token * rank);
  TRY(goes_on, show(layer, LinearInput::latent_key, output_, rank, {}, sink, nullptr));
  if (!goes_on) return false;
  linear(output_, weights, Slot::kv_b, Slot::kv_b_bias, rank, heads * both, up_);
  k_.resize(tokens_ * heads * dim);
  v_.resize(tokens_ * heads * value);
  for (size_t i = 0; i < tokens_ * heads; ++i) {
    const float* const from = up_.data() + i * both;
    std::copy_n(from, plain, k_.data() + i * dim);
    std::copy_n(fused_.data() + i / heads * (rank + rope) + rank, rope, k_.data() + i * dim + plain);
    std::copy_n(from + plain, value, v_.data() + i * value);
  }
  return true;
}

}  // namespace wasmquant::model
