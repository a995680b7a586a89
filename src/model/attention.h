// Causal attention, of encoders that to all tokens, with grouped queries (J. Ainslie et al. 2023): query head h reads key and value head
// h / (heads / kv_heads), softmax(scale q k^T) v. In sliding layers a token sees the last `window` keys.
#pragma once
#include <cstddef>
#include <vector>

#include "model/config/architecture.h"

namespace wasmquant::model {

/// Working memory, kept from call to call.
struct AttentionMemory {
  std::vector<float> queries, scores, output, product;
};

/// The tokens of one sequence from `past` on. q [length - past, heads * head_dim], k and v [length, kv_heads * head_dim], q and k with
/// RoPE applied; y [length - past, heads * head_dim]. Tokens do not depend on `past`, to the bit.
void attend(const Architecture& architecture, bool is_sliding, const float* q, const float* k, const float* v,
            size_t past, size_t length, AttentionMemory& memory, float* y);

}  // namespace wasmquant::model
