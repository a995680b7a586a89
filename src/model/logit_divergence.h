// How far a model's prediction of the next token is from a reference's, from logits of both that arrive in tiles of the
// vocabulary. With the reference's logits r and the model's q of one position:
//   KL(reference || model) = sum_i p_i (r_i - q_i) - logsumexp(r) + logsumexp(q),   p = softmax(r)
// so that sums over tiles are enough, as in token_loss.h.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace wasmquant::model {

/// What is known of one position, in nats.
struct PositionDivergence {
  double kld = 0;             // KL(reference || model)
  double loss = 0;            // -ln of the model's probability of the target
  double reference_loss = 0;  // and of the reference's
  bool is_same_top = false;   // whether both have the same most probable token, the first of equals
};

/// Accumulates the divergence of a batch of positions.
class LogitDivergence {
 public:
  /// The token that follows each position; a negative one never matches.
  explicit LogitDivergence(std::vector<int32_t> targets);

  /// Logits [rows, width] of positions `first` and following and of tokens `first_token` and following, both of the
  /// same shape and width >= 1. Tiles come in the order of the vocabulary; their widths decide the order of additions.
  /// Overwrites both.
  void add(std::span<float> reference, std::span<float> logits, size_t width, size_t first,
           uint32_t first_token) noexcept;

  /// Once every tile was added. NaN where a logit of either was not finite.
  PositionDivergence at(size_t position) const noexcept;

 private:
  struct Distribution {
    float largest, target_logit = 0;
    int32_t top = -1;
    double sum = 0;  // of exp(logit - largest)

    Distribution() noexcept;
    double log_sum() const noexcept;
  };
  struct Position {
    int32_t target = -1;
    Distribution reference, model;
    double cross = 0;  // sum of exp(r - largest r) (r - q)
  };
  std::vector<Position> positions_;
};

}  // namespace wasmquant::model
