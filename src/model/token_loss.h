// Negative log-likelihood of the next token, -log softmax(logits)[target], from logits that arrive in tiles of the
// vocabulary: per position the largest logit so far, the sum of exp(logit - largest) and the target's logit.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace wasmquant::model {

/// Accumulates losses of one sequence.
class TokenLoss {
 public:
  /// One target per position; a negative one never matches.
  explicit TokenLoss(std::vector<int32_t> targets);

  /// Logits [rows, width] of positions `first` and following and of tokens `first_token` and following. Tiles come in
  /// the order of the vocabulary; their widths decide the order of additions. The logits are overwritten.
  void add(std::span<float> logits, size_t width, size_t first, uint32_t first_token) noexcept;

  /// In nats, once every tile was added; NaN where a logit of the position was NaN.
  double loss(size_t position) const noexcept;

 private:
  std::vector<int32_t> targets_;
  std::vector<float> largest_, target_logits_;
  std::vector<double> sums_;
};

}  // namespace wasmquant::model
