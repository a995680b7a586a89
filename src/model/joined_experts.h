// Experts that a dense feed-forward has with it (Gemma 4). With m what the feed-forward gives of norm(x), and e the sum of the experts of
// norm_2(x):
//   x = scale (x + norm_3(norm_4(m) + norm_5(e)))
// The router reads x normed without a weight, times a vector, by root(hidden). Source: transformers, models/gemma4/modeling_gemma4.py.
#pragma once
#include <span>
#include <vector>

#include "model/block_weights.h"
#include "model/experts/routing.h"

namespace wasmquant::model {

/// The input of the router of a stream `x` [tokens, hidden].
std::vector<float> router_input(const Architecture& architecture, const BlockValues& weights, std::span<const float> x);

/// Begins: `dense` [tokens, hidden] is m; from `x` what the experts see, to routed.input. Weights of their choice are scaled.
void begin_joined(const Architecture& architecture, const BlockValues& weights, std::span<const float> x,
                  std::vector<float> dense, Routed& routed);

/// Ends: adds both to x, once.
void finish_joined(const Architecture& architecture, JoinedExperts& joined, std::span<float> x);

}  // namespace wasmquant::model
