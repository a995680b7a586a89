// AWQ: scales up weight columns that meet large activations before they are rounded; the exponent is searched.
//   s_j = max(mean |x_j|^r, 1e-4) / sqrt(max s * min s),  r = 0, 0.05, ... 0.95: the r whose Q(W s) / s changes the
//   output least, on rows that are more for better candidates (awq_rounds.h). With duo scaling also
//   s_j = mean |x_j|^r / (mean |w_j|^(1 - r) + 1e-4), |w| relative to the largest of its group, r = 0, 0.1,
//   ... 0.9. Then clipping is searched the same way: limits of 1, 0.95, ... 0.55 of each group's largest weight.
// Source: J. Lin et al., "AWQ: Activation-aware Weight Quantization", 2023; AMD Quark's grids and clamps (spec 7.2).
#pragma once
#include <cstdint>
#include <optional>
#include <span>

#include "algorithms/output_error.h"
#include "config/spec/spec.h"
#include "core/order.h"
#include "core/result.h"
#include "numeric/ggml_type.h"

namespace wasmquant {

/// Candidates of r.
inline constexpr size_t kAwqSteps = 20;

/// Those of duo scaling.
inline constexpr size_t kDuoSteps = 10;

/// What candidates are made of.
struct AwqMeans {
  std::span<const double> inputs;        // mean |x| of each feature
  std::span<const double> weights = {};  // for duo scaling, weight_means(); empty: none

  size_t steps() const noexcept { return kAwqSteps + (weights.empty() ? 0 : kDuoSteps); }
};

/// The candidate of one step, 0 <= step < means.steps(), computed in float64; step 0 gives ones.
/// Errors: shape-mismatch, value-not-finite (a mean or scale is NaN or infinite; names the feature).
Status awq_scales(const AwqMeans& means, size_t step, std::span<float> scales);

/// A linear layer that reads the scaled inputs.
struct AwqLayer {
  std::span<const float> weight;  // [rows, columns]
  QuantizationSpec spec;
  /// The type of GGUF that it is stored in; `spec` then only has the groups of duo scaling.
  std::optional<GgmlType> blocks = {};
};

/// A layer that is stored in blocks. A search in a codebook would take its time for each candidate, so integers of as many bits in
/// groups of 32 stand for its entries; of other blocks such groups show which weights are large.
AwqLayer layer_in_blocks(std::span<const float> weight, size_t columns, GgmlType type);

/// values = Q(W s) / s for rows of a layer, `weight` [*, scales.size()]. `squares`: of the features, which weigh the errors of
/// scale_refit and of blocks. Errors: those of granularity_of and Observer.
Status round_scaled(const AwqLayer& layer, std::span<const float> weight, std::span<const float> scales,
                    std::span<float> values, std::span<const float> squares = {});

/// The same for a whole weight.
Status quantize_scaled(std::span<const float> weight, const QuantizationSpec& spec, std::span<const float> scales,
                       std::span<float> values, std::span<const float> squares = {});

/// Means over all rows of |w| divided by the largest |w| of the row's group. Errors: those of ColumnGroups.
Result<std::vector<double>> weight_means(std::span<const AwqLayer> layers, size_t columns);

/// The result of a search.
struct AwqChoice {
  size_t step;
  double loss;           // mean squared change of all layers' outputs with the chosen scales
  double unscaled_loss;  // the same with step 0
};

/// The best of every `stride`-th candidate by its loss, the first one of equals; `scales` gets it. Errors: those of
/// awq_scales and of `loss`; value-not-finite (no loss is finite).
Result<AwqChoice> search_scales(std::span<const double> ranges, size_t stride, std::span<float> scales,
                                const CallableRef<Result<double>()>& loss);

/// The best candidate for the layers' outputs, the first of equals; `scales` gets it (awq_rounds.h,
/// AwqSearch). Small layers are measured whole. If another module's output is to be compared (attention), run that module on candidates of awq_scales and quantize_scaled. Errors: shape-mismatch;
/// value-not-finite (no loss is finite); those of awq_scales and quantize_scaled.
Result<AwqChoice> search_awq_scales(std::span<const double> mean_abs, std::span<const AwqLayer> layers,
                                    const OutputError& inputs, std::span<float> scales);

/// Clamps each group of weight [rows, columns] to the limit that changes the group's share of the output least after
/// rounding; the largest of equals. `hessian` [columns, columns] is X^T X times any factor for the inputs of the weight as
/// passed, so divided by s if it was multiplied; read are its blocks on the diagonal, one per group.
/// Quark skips q and k projections. Errors: shape-mismatch, spec-invalid (per_tensor has no groups to clip; other
/// axes), those of granularity_of and OutputError::of_hessian.
Status clip_weight(std::span<float> weight, uint64_t rows, const QuantizationSpec& spec,
                   std::span<const float> hessian);

}  // namespace wasmquant
