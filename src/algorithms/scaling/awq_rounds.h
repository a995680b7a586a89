// Successive halving of AWQ's candidates (K. Jamieson, A. Talwalkar, "Non-stochastic Best Arm Identification and
// Hyperparameter Optimization", 2016): all are measured on an eighth of the rows, the better ones on more, the last on
// all. Step 0, no scales, always goes on, so that the choice is never worse than it.
// Pieces of a round may be measured in any order.
#pragma once
#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "algorithms/scaling/awq.h"
#include "core/result.h"
#include "core/team_share.h"

namespace wasmquant {

/// A candidate to be measured on parts [begin, end) of the rows of every layer: part i has rows i, i + parts, ...
struct AwqPiece {
  size_t step, begin, end;
};

/// One search.
class AwqRounds {
 public:
  /// `has_parts` false: every candidate is measured on all rows at once. `steps`: candidates.
  explicit AwqRounds(bool has_parts, size_t steps = kAwqSteps);

  size_t parts() const noexcept { return parts_; }
  const std::vector<AwqPiece>& pieces() const noexcept { return pieces_; }
  /// The squared changes of the outputs of a piece's rows, part by part; once for each piece.
  void set_losses(size_t piece, std::span<const double> losses) noexcept;
  /// Begins the next round. Returns false after the last one.
  bool next();

  /// The candidate that loses least on all rows, the first of equals; losses divided by `outputs`. Error:
  /// value-not-finite (no loss is finite).
  Result<AwqChoice> choice(double outputs) const;

 private:
  static constexpr size_t kParts = 16;
  /// Over the parts measured so far, added in order; infinite if not a number.
  double loss_of(size_t step) const noexcept;
  void add_pieces(size_t begin);

  size_t parts_, round_ = 0, end_ = 0;  // parts that are measured by the end of the current round
  std::vector<size_t> candidates_;      // steps, ascending
  std::vector<AwqPiece> pieces_;
  std::array<std::array<double, kParts>, kAwqSteps + kDuoSteps> losses_{};
};

/// Rows of all layers together that a search in parts needs; fewer for each of many experts, whose searches together cost as
/// much as their weights.
inline constexpr size_t kFewestRowsInParts = 512, kFewestRowsOfExpert = 128;

/// The search of AWQ's scales (search_awq_scales), whose parts members of a team divide. While next() is true: measure(),
/// then the losses of the others are put into losses().
class AwqSearch {
 public:
  /// `mean_abs` and `layers` must outlive the search. `duo_scaling`: with its candidates. Error: shape-mismatch.
  static Result<AwqSearch> create(std::span<const double> mean_abs, std::span<const AwqLayer> layers,
                                  OutputError inputs, bool duo_scaling = false,
                                  size_t fewest_rows_in_parts = kFewestRowsInParts);

  /// Measures the member's parts of the round's pieces. Errors: those of awq_scales and quantize_scaled.
  Status measure(TeamShare share);
  /// A member's, of the current round, part by part.
  std::span<double> losses(TeamShare share) noexcept;
  /// Begins the next round. Returns false after the last one.
  bool next();
  /// `scales` gets the choice. Errors: those of AwqRounds::choice and awq_scales.
  Result<AwqChoice> choice(std::span<float> scales) const;

 private:
  AwqSearch(std::span<const double> mean_abs, std::vector<double> weight_means, std::span<const AwqLayer> layers,
            OutputError inputs, size_t rows, bool has_parts);
  AwqMeans means() const noexcept { return {mean_abs_, weight_means_}; }
  void make_room();

  std::span<const double> mean_abs_;
  std::vector<double> weight_means_;  // empty without duo scaling
  std::span<const AwqLayer> layers_;
  OutputError inputs_;
  std::vector<float> squares_;  // of the features
  size_t rows_;
  AwqRounds rounds_;
  std::vector<size_t> offsets_;  // of each piece's losses, and their number
  std::vector<double> losses_;   // of the round's pieces, part by part
};

}  // namespace wasmquant
