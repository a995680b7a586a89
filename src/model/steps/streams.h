// Streams of which a block computes one, and which the others follow (AltUp; C. Baykal et al. 2023), as in Gemma 3n. With the router
// r(x) = tanh(R norm(x) / hidden) of the active stream a, the block sees its prediction, whose result y corrects all:
//   p_i = x_i + sum_j P(r(x_a))_ij x_j,   x_i' = p_i + (1 + C r(y))_i (y - p_a)
// They begin as products of the embedding, and end as the mean of products, each as long as the first stream.
// Source: transformers, models/gemma3n/modeling_gemma3n.py.
#pragma once
#include <span>
#include <vector>

#include "model/config/architecture.h"

namespace wasmquant::model {

/// Matrices of a layer: router [count, hidden] and its norm [hidden], P [count * count, count], C [count, count].
struct StreamWeights {
  std::span<const float> router, norm, predictions, corrections;
};

/// x [count, tokens, hidden]; the predictions in the same order.
std::vector<float> predict_streams(const Architecture& architecture, const StreamWeights& weights,
                                   std::span<const float> x);
/// `predicted`, corrected by `y` [tokens, hidden], to `x`.
void correct_streams(const Architecture& architecture, const StreamWeights& weights, std::span<const float> predicted,
                     std::span<const float> y, std::span<float> x);

/// x [tokens, hidden] becomes [count, tokens, hidden]. `matrices`: [hidden, hidden] of each stream but the first.
void part_streams(const Architecture& architecture, std::span<const std::vector<float>> matrices,
                  std::vector<float>& x);
/// The opposite.
void join_streams(const Architecture& architecture, std::span<const std::vector<float>> matrices,
                  std::vector<float>& x);

/// Leaves of each row of `columns` what is more than `limit` standard deviations above its mean, less that.
void limit_gate(std::span<float> x, size_t columns, float limit) noexcept;

}  // namespace wasmquant::model
