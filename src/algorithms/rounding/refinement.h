// Improves a rounded weight Q of W [rows, n] further, by the same measure that GPTQ descends, tr((W - Q) H (W - Q)^T):
//   scales of a row for given codes c: the least squares of all its groups together, A s = b with
//     A_gh = sum over i in g, j in h of c_i H_ij c_j,   b_g = sum over i in g of c_i (H w)_i
//   codes for given scales, one column j after the other: q_j = QDQ(q_j + (H (w - q))_j / H_jj), which no other code of that
//     column beats
// Source of the second: K. Behdin et al., "QuantEase: Optimization-based Quantization for Language Models", 2023.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "config/spec/spec.h"
#include "core/order.h"
#include "quantize/qparams.h"

namespace wasmquant {

/// The layer whose rows are refined; rows are independent.
struct RefinedRows {
  std::span<const float> hessian;    // [n, n], damped; both triangles
  std::span<const uint32_t> groups;  // [n], the scale of each column, 0 ... count - 1
  size_t group_count;
  const QuantizationSpec& spec;
  std::span<const float> weight;  // [rows, n]
  std::span<float> values;        // [rows, n], what the codes stand for
  std::span<uint8_t> codes;       // one for each value, as gptq() writes them
  std::span<QParams> qparams;     // [rows, group_count]
};

/// Whether scales of the spec can be fit: integers with scales of any size, whole zero points, and a scale per row or group.
bool can_refit(const QuantizationSpec& spec) noexcept;

/// Scales by least squares, and the values of the codes with them. A row whose equations have no solution with the signs of its
/// scales stays. Requires can_refit.
/// `stored`: a scale as the file holds it.
void refit_row_scales(const RefinedRows& rows, const CallableRef<float(float)>& stored);

/// Some rows and columns of a weight whose values change one column after the other. Arrays are [columns][kRows].
struct Descent {
  static constexpr size_t kRows = 64, kColumns = 64;  // at most, at a time

  size_t first, count;  // rows
  size_t begin, end;    // columns; `begin` is a multiple of kColumns
  const float* hessian;
  size_t columns;     // of the weight
  float *now, *pull;  // q and H (w - q) of all columns; current for those of [begin, end)
  float* change;      // of the columns [begin, end)

  /// x[row]: what the column would best become. False if it does not matter, which has no best.
  bool wanted(size_t column, float* x) const noexcept;
  /// The column becomes x[row].
  void set(size_t column, const float* x) noexcept;
};

/// Improves values [rows, n] of `weight` by one pass: `improve` is called for all columns of some rows in turn, then for other rows.
void descend(std::span<const float> hessian, std::span<const float> weight, std::span<float> values,
             const CallableRef<void(Descent& at)>& improve);

/// One pass over all columns; no row's error grows, but for rounding. Values are those of the codes before and after.
void descend_codes(const RefinedRows& rows);

/// Adds damp_percent of the diagonal's mean to the diagonal; columns without input count as 1 there, as for GPTQ.
void damp_diagonal(std::span<float> hessian, size_t columns, double damp_percent) noexcept;

}  // namespace wasmquant
