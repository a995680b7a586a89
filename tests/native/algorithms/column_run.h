// One run of one column-wise algorithm on a layer whose arrays have exactly the documented sizes, so that a sanitizer
// sees every access beside them.
#pragma once
#include <optional>
#include <utility>
#include <vector>

#include "algorithms/hessian.h"
#include "algorithms/rounding/gptaq.h"
#include "algorithms/rounding/gptq.h"
#include "algorithms/rounding/qronos.h"
#include "algorithms/scaling/awq.h"
#include "observers/observer.h"
#include "observers/registry.h"
#include "quantize/quantize.h"

namespace wasmquant {

enum class ColumnMethod : uint8_t { nearest, gptq, gptaq, qronos, gpfq, awq_clip, awq_scales };
inline constexpr size_t kColumnMethods = 7;

/// `rows` by `columns` weights, and inputs in the float and in the quantized network.
struct ColumnLayer {
  size_t rows, columns;
  std::vector<float> weight, x, changed;  // [rows, columns], [tokens, columns] twice
};

struct ColumnResult {
  std::vector<float> values;  // the weight that the algorithm gives
  std::vector<uint8_t> codes;
  std::vector<QParams> qparams;
};

inline std::vector<QParams> min_max_scales(const Granularity& g, const QuantizationSpec& spec,
                                           std::span<const float> weight) {
  RangeObserver observer(g, spec);
  observer.update(weight, 0);
  return observer.finish();
}

/// Codes and values of `weight` by rounding to nearest.
inline ColumnResult rounded_columns(const ColumnLayer& layer, const QuantizationSpec& spec, const Granularity& g,
                                    const std::vector<float>& weight) {
  ColumnResult out{std::vector<float>(weight.size()), std::vector<uint8_t>(weight.size() * code_bytes_of(spec)),
                   min_max_scales(g, spec, weight)};
  quantize(g, spec, out.qparams, kernels::Path::fake, weight, 0, out.codes.data());
  dequantize(g, spec, out.qparams, out.codes.data(), layer.rows * layer.columns, 0, out.values.data());
  return out;
}

/// Errors: those of the algorithm.
inline Result<ColumnResult> run_columns(ColumnMethod method, const ColumnLayer& layer, const QuantizationSpec& spec,
                                        const GptqOptions& options) {
  const size_t rows = layer.rows, columns = layer.columns;
  TRY(g, granularity_of({rows, columns}, spec));
  if (method == ColumnMethod::nearest) return rounded_columns(layer, spec, g, layer.weight);
  if (method == ColumnMethod::awq_clip) {
    std::vector<float> weight = layer.weight, products(columns * columns);
    for (size_t at = 0; at < layer.x.size(); at += columns)
      for (size_t i = 0; i < products.size(); ++i) products[i] += layer.x[at + i / columns] * layer.x[at + i % columns];
    TRY_VOID(clip_weight(weight, rows, spec, products));
    return rounded_columns(layer, spec, g, weight);
  }
  if (method == ColumnMethod::awq_scales) {
    std::vector<float> scales(columns), values(layer.weight.size());
    const std::vector<double> means(columns, 1.0);
    const AwqLayer only{layer.weight, spec};
    TRY(choice, search_awq_scales(means, {&only, 1}, OutputError(layer.x, columns), scales));
    (void)choice;
    TRY_VOID(quantize_scaled(layer.weight, spec, scales, values));
    return ColumnResult{std::move(values), {}, {}};
  }
  GpfqInputs pair(columns);
  TRY_VOID(pair.add(layer.x, layer.changed));
  pair.finish();
  ColumnResult out{layer.weight, std::vector<uint8_t>(layer.weight.size() * code_bytes_of(spec)), {}};
  if (method == ColumnMethod::gpfq) {
    out.qparams = min_max_scales(g, spec, layer.weight);
    GpfqOptions order;
    order.act_order = options.desc_act;
    TRY_VOID(gpfq(pair, spec, out.qparams, order, rows, out.values, out.codes));
    return out;
  }
  std::vector<float> hessian(pair.square().begin(), pair.square().end());
  TRY(feedback, error_feedback_of(std::move(hessian), columns, 0.01, options.desc_act));
  const std::vector<float> drift = input_drift(pair, 1);
  if (method == ColumnMethod::gptaq) add_drift(feedback, drift);
  if (method == ColumnMethod::qronos) TRY_VOID(correct_for_drift(feedback, drift, out.values));
  TRY(qparams, gptq(feedback, spec, options, rows, out.values, out.codes));
  out.qparams = std::move(qparams);
  return out;
}

}  // namespace wasmquant
