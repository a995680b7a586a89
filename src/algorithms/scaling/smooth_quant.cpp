#include "algorithms/scaling/smooth_quant.h"

#include <algorithm>
#include <cmath>

#include "algorithms/power.h"
#include "algorithms/scaling/scale_search.h"
#include "core/message.h"
#include "kernels/kernels.h"

namespace wasmquant {
namespace {

Error sizes_differ(const char* what, size_t a, size_t b) {
  return error_at(ErrorCode::shape_mismatch, "", "{}{} and {}", what, a, b);
}

}  // namespace

Status accumulate_column_absmax(std::span<const float> x, std::span<float> max) {
  const size_t columns = max.size();
  if (columns == 0 || x.size() % columns != 0)
    return sizes_differ("values that do not fill whole rows: ", x.size(), columns);
  if (const int64_t at = kernels::find_non_finite(x); at >= 0)
    return error_at(ErrorCode::value_not_finite, "", "row {}, column {} is NaN or infinite",
                    static_cast<size_t>(at) / columns, static_cast<size_t>(at) % columns);
  for (size_t at = 0; at < x.size(); at += columns)
    for (size_t j = 0; j < columns; ++j) max[j] = std::max(max[j], std::fabs(x[at + j]));
  return {};
}

Status smooth_scales(std::span<const float> activation_max, std::span<const float> weight_max,
                     const SmoothQuantOptions& options, std::span<float> scales) {
  for (const size_t length : {weight_max.size(), scales.size()})
    if (length != activation_max.size())
      return sizes_differ("the lengths of activations and of weights or scales differ: ", activation_max.size(),
                          length);
  for (size_t j = 0; j < scales.size(); ++j) {
    const double weight = std::max<double>(weight_max[j], options.weight_clamp_min);
    const bool is_negligible = activation_max[j] <= options.negligible || weight_max[j] <= options.negligible;
    const double scale = is_negligible ? 1 : power(activation_max[j], options.alpha) / power(weight, 1 - options.alpha);
    scales[j] = static_cast<float>(std::max(scale, options.scale_clamp_min));
    if (!std::isfinite(activation_max[j]) || !std::isfinite(weight_max[j]) || !std::isfinite(scales[j]))
      return error_at(ErrorCode::value_not_finite, "", "the range of feature {} or its scale is NaN or infinite", j);
  }
  return {};
}

Status share_head_scales(std::span<float> scales, size_t repeats, size_t head_size, std::span<float> head_scales) {
  if (repeats == 0 || head_size == 0 || head_scales.size() % head_size != 0 ||
      scales.size() != head_scales.size() * repeats)
    return sizes_differ("scales that are no multiple of heads: ", scales.size(), head_scales.size());
  for (size_t i = 0; i < head_scales.size(); ++i) {
    float* const first = scales.data() + i / head_size * repeats * head_size + i % head_size;
    float largest = *first;
    for (size_t k = 1; k < repeats; ++k) largest = std::max(largest, first[k * head_size]);
    for (size_t k = 0; k < repeats; ++k) first[k * head_size] = largest;
    head_scales[i] = largest;
  }
  return {};
}

void scale_columns(std::span<float> weight, std::span<const float> scales) noexcept {
  for (size_t at = 0; at < weight.size(); at += scales.size())
    for (size_t j = 0; j < scales.size(); ++j) weight[at + j] *= scales[j];
}

void divide_rows(std::span<float> weight, size_t columns, std::span<const float> scales) noexcept {
  for (size_t j = 0; j < scales.size(); ++j)
    for (size_t i = 0; i < columns; ++i) weight[j * columns + i] /= scales[j];
}

void divide_offset_norm(std::span<float> weight, std::span<const float> scales) noexcept {
  for (size_t j = 0; j < scales.size(); ++j) weight[j] = (1 + weight[j]) / scales[j] - 1;
}

Result<bool> smooth_quant_scaling(const ScaleSearch& search, std::span<float> scales) {
  TRY_VOID(smooth_scales(search.input.largest, search.weight_max, search.smooth_quant, scales));
  return true;
}

}  // namespace wasmquant
