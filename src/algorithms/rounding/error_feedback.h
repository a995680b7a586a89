// What GPTQ derives from a Hessian: an order of the columns and the factor that spreads a column's rounding error over
// later columns. Computed once per layer input; layers that share the input, and tiles of rows, share it.
// Source: E. Frantar et al., "GPTQ", 2022, steps 1-3; AMD Quark's damping and retry rule (spec 7.4).
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "core/result.h"
#include "core/team_share.h"

namespace wasmquant {

/// The order of columns and the factor derived from a Hessian.
struct ErrorFeedback {
  std::vector<float> factor;    // U [n, n], upper triangular, H'^-1 = U^T U, H' damped and in `order`; zeros below
  std::vector<uint32_t> order;  // column of the layer at each position
  std::vector<uint32_t> dead;   // columns without input (H_jj = 0), ascending; their weights become 0
  std::vector<float>
      squares;  // mean squares of the layer's columns times any factor: weights of scale_refit; empty: ones
  std::vector<float> drift;  // P of GPTAQ (gptaq.h) [n, n], strictly upper triangular; empty: none

  size_t columns() const noexcept { return order.size(); }
};

/// An order of columns.
struct ColumnOrder {
  bool desc_act;        // by descending H_jj, equal ones by index; false: as they are
  uint64_t group_size;  // not 0: groups of as many columns stay together, by their largest H_jj, a short one last
  uint64_t part_size;   // not 0: so do parts of as many columns inside each group

  constexpr ColumnOrder(bool by_inputs, uint64_t groups_of = 0, uint64_t parts_of = 0) noexcept
      : desc_act(by_inputs), group_size(groups_of), part_size(parts_of) {}
  friend bool operator==(const ColumnOrder&, const ColumnOrder&) = default;
};

/// `hessian` [columns, columns], symmetric, both triangles; its memory becomes the factor.
///   dead columns: H_jj = 1
///   damping: H_jj += damp_percent * mean(diag H). If H is still not positive definite, extra = max(|damping|,
///   1e-6 * mean |diag|, 2^-23) is added to the diagonal too, then 10 times as much, and so on: five tries.
/// Errors: shape-mismatch, value-not-finite (names the column), argument-invalid (no try succeeded).
Result<ErrorFeedback> error_feedback_of(std::vector<float> hessian, size_t columns, double damp_percent,
                                        ColumnOrder order);

/// The same in two steps, between which members of a team exchange what they have made. First `factor` is R, H' = R R^T,
/// with zeros below; `has_factor` false: its memory is there, and another member finds it.
Result<ErrorFeedback> factor_hessian(std::vector<float> hessian, size_t columns, double damp_percent, ColumnOrder order,
                                     bool has_factor = true);
/// The columns of U = R^-1 that a member finds: all members take about as long.
TeamShare::Range inverted_columns(size_t columns, TeamShare share) noexcept;
/// Then these columns of `factor` become U's; those of other members are undefined until they are put there.
void invert_factor(ErrorFeedback& feedback, TeamShare::Range columns) noexcept;

}  // namespace wasmquant
