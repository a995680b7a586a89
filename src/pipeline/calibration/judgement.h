// Squared changes of one layer's outputs, judged row by row, so that members of a team divide the rows.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "algorithms/expected_error.h"
#include "core/list.h"
#include "core/team_share.h"
#include "model/block_weights.h"
#include "pipeline/calibration/block_calibration.h"

namespace wasmquant {

/// Rows that a member computes, in whole tiles of products.
inline constexpr size_t kSharedRows = 8;

/// `pull` of judge(): W D [rows, columns] where the method also corrects for drift D of the inputs (gptaq.h):
/// |W x - Q x'|^2 is then error - 2 tr(pull change^T), plus a constant.
struct BlockCalibration::Judgement {
  /// What is judged: the weight itself; what was stored; rounding to nearest of the weight as it was before its columns were
  /// scaled, and as it is.
  enum What { signal, stored, nearest, scaled_nearest };

  model::Slot slot;
  size_t rows;
  bool aims_at_float = false;
  std::array<std::vector<double>, 4> sums;  // ExpectedError::sum_rows of all rows; empty: not judged
  std::array<double, 4> pulled{};

  double error_of(What what, const ExpectedError& expected) const noexcept {
    return expected.of_sums(sums[what]) - 2 * expected.share() * pulled[what];
  }
  void add_results(TeamShare share, List<std::span<uint8_t>>& out) noexcept {
    const auto part = share.of(rows, kSharedRows);
    for (std::vector<double>& all : sums)
      if (!all.empty()) add_region(std::span(all).subspan(2 * part.begin, 2 * part.count()), out);
  }

  template <class T>
  static void add_region(std::span<T> values, List<std::span<uint8_t>>& out) noexcept {
    out.push_back({reinterpret_cast<uint8_t*>(values.data()), values.size_bytes()});
  }
};

}  // namespace wasmquant
