#include "algorithms/scaling/auto_smooth_quant.h"

#include <cmath>
#include <vector>

#include "algorithms/scaling/scale_search.h"
#include "core/message.h"
#include "kernels/matmul.h"

namespace wasmquant {
namespace {

// Axes of [sequences, tokens, features] as those of [tokens, features].
QuantizationSpec of_rows(QuantizationSpec spec) {
  spec.ch_axis = spec.qscheme == QScheme::per_channel && (spec.ch_axis == 1 || spec.ch_axis == -2) ? 0 : 1;
  return spec;
}

// Of the layer's output: sum over its elements of squares, or of magnitudes.
double output_loss(std::span<const float> x, std::span<const float> rounded_x, std::span<const float> w,
                   std::span<const float> rounded_w, size_t columns, ScaleLoss loss) {
  const size_t tokens = x.size() / columns, rows = w.size() / columns;
  std::vector<float> y(tokens * rows), workspace(kernels::matmul_workspace(tokens, rows, columns));
  kernels::matmul({rounded_x.data(), columns, 1}, {rounded_w.data(), columns, 1}, columns, tokens, rows,
                  kernels::Update::set, kernels::Region::all, y.data(), rows, workspace.data());
  kernels::matmul({x.data(), columns, 1}, {w.data(), columns, 1}, columns, tokens, rows, kernels::Update::subtract,
                  kernels::Region::all, y.data(), rows, workspace.data());
  double sum = 0;
  for (const float value : y) sum += loss == ScaleLoss::mae ? std::fabs(value) : double{value} * value;
  return sum;
}

}  // namespace

Result<AwqChoice> search_smooth_scales(std::span<const float> x, std::span<const float> largest,
                                       std::span<const AwqLayer> layers, const QuantizationSpec* input_spec,
                                       ScaleLoss loss, std::span<float> scales) {
  const size_t columns = scales.size();
  if (columns == 0 || x.empty() || x.size() % columns != 0 || largest.size() != columns)
    return error_at(ErrorCode::shape_mismatch, "", "{} inputs and {} ranges do not fit {} features", x.size(),
                    largest.size(), columns);
  const std::vector<double> ranges(largest.begin(), largest.end());
  std::vector<float> inverse(columns), rounded_x(x.begin(), x.end()), rounded_w;
  return search_scales(ranges, kAwqSteps / kAutoSmoothSteps, scales, [&]() -> Result<double> {
    for (size_t j = 0; j < columns; ++j) inverse[j] = 1 / scales[j];
    if (input_spec != nullptr) TRY_VOID(quantize_scaled(x, of_rows(*input_spec), inverse, rounded_x));
    double total = 0, outputs = 0;
    for (const AwqLayer& layer : layers) {
      rounded_w.resize(layer.weight.size());
      TRY_VOID(round_scaled(layer, layer.weight, scales, rounded_w));
      total += output_loss(x, rounded_x, layer.weight, rounded_w, columns, loss);
      outputs += static_cast<double>(x.size() / columns * (layer.weight.size() / columns));
    }
    return loss == ScaleLoss::rmse ? std::sqrt(total / outputs) : total / outputs;
  });
}

Result<bool> auto_smooth_quant_scaling(const ScaleSearch& search, std::span<float> scales) {
  if (search.layers.empty()) return false;
  TRY(choice, search_smooth_scales(search.input.sample, search.input.largest, search.layers, search.input_spec,
                                   search.loss, scales));
  return choice.step != 0;
}

}  // namespace wasmquant
