// Causal attention, of encoders that to all tokens, with grouped queries (J. Ainslie et al. 2023): query head h reads key and value head
// h / (heads / kv_heads), softmax(scale q k^T) v. In sliding layers a token sees the last `window` keys.
// A head with a sink has one more score, of a key that has no value (gpt-oss; after G. Xiao et al. 2023).
#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "model/config/architecture.h"
#include "model/steps/relative_bias.h"

namespace wasmquant::model {

/// How much the score of a key grows with its position, of heads with such slopes (O. Press et al. 2021, ALiBi).
float slope_of(size_t heads, size_t head) noexcept;

/// Working memory, kept from call to call.
struct AttentionMemory {
  std::vector<float> queries, scores, output, product, with_sink;
};

/// The tokens of one sequence from `past` on. q [length - past, heads * head_dim], k [length, kv_heads * head_dim], v [length, kv_heads * value_dim], q and k with
/// RoPE applied; y [length - past, heads * value_dim]. `sinks` [heads], or empty; `bias` of encoders, or empty. Tokens do not depend on `past`, to the bit.
void attend(const Architecture& architecture, bool is_sliding, const float* q, const float* k, const float* v,
            std::span<const float> sinks, const RelativeBias& bias, size_t past, size_t length, AttentionMemory& memory,
            float* y);

}  // namespace wasmquant::model
