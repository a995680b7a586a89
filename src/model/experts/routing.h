// Which experts a token is sent to, and their weights.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "model/config/architecture.h"

namespace wasmquant::model {

/// What a dense feed-forward and its experts give, to be joined once all of them have run, and by which norms.
struct JoinedExperts {
  std::vector<float> dense, sum;      // [tokens, hidden]
  std::vector<float> sum_norm, norm;  // [hidden]
  float scale = 1;                    // of the stream behind them
};

/// Where the tokens of a portion go, and what they bring: the normed input of the feed-forward.
struct Routed {
  JoinedExperts joined;
  std::vector<float> input;       // [tokens, hidden]
  std::vector<uint32_t> experts;  // [tokens, chosen]
  std::vector<float> weights;     // [tokens, chosen]

  bool has(uint32_t expert) const noexcept;
};

/// `logits` [tokens, experts] of the router; `correction` [experts] is added to scores for the choice only, or empty. Scores are float64, sums
/// in order; of equal ones the first is chosen. Sets experts and weights of `out`.
void route(const Routing& routing, std::span<const float> logits, std::span<const float> correction, Routed& out);

}  // namespace wasmquant::model
