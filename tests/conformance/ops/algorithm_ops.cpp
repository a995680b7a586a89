// Algorithms that change weights: SmoothQuant's scales and GPTQ.
#include "algorithms/hessian.h"
#include "algorithms/rounding/gptq.h"
#include "algorithms/scaling/smooth_quant.h"
#include "observers/observer.h"
#include "observers/registry.h"
#include "ops/ops.h"

namespace conformance {

using namespace wasmquant;

namespace {

Result<bool> flag(const GoldenCase& c, std::string_view name) {
  const json::Value* value = c.param(name);
  if (!value || !value->is_bool()) return not_yet("no true or false in parameter " + std::string(name));
  return value->as_bool();
}

Result<GptqOptions> gptq_options(const GoldenCase& c) {
  GptqOptions options;
  TRY(damp_percent, c.number("damp_percent"));
  TRY(block_size, c.number("block_size"));
  TRY(desc_act, flag(c, "desc_act"));
  TRY(static_groups, flag(c, "static_groups"));
  options.damp_percent = damp_percent;
  options.block_size = static_cast<uint32_t>(block_size);
  options.desc_act = desc_act;
  options.static_groups = static_groups;
  return options;
}

// Mean of (X (Wq - W)^T)^2 in float64.
double output_error(const Tensor& x, const Tensor& weight, std::span<const float> quantized) {
  const size_t columns = weight.shape[1], rows = weight.shape[0], tokens = x.values.size() / columns;
  double sum = 0;
  for (size_t t = 0; t < tokens; ++t)
    for (size_t i = 0; i < rows; ++i) {
      double y = 0;
      for (size_t j = 0; j < columns; ++j)
        y += x.values[t * columns + j] * (quantized[i * columns + j] - weight.values[i * columns + j]);
      sum += y * y;
    }
  return sum / static_cast<double>(tokens * rows);
}

}  // namespace

Result<Outputs> smooth_scales_of(const GoldenCase& c) {
  TRY_VOID(c.allow_params({"alpha", "scale_clamp_min"}));
  TRY(alpha, c.number("alpha"));
  TRY(scale_clamp_min, c.number("scale_clamp_min"));
  TRY(activation, c.input("act_max"));
  TRY(weight, c.input("weight"));
  std::vector<float> weight_max(activation.values.size()), scales(weight_max.size());
  TRY_VOID(accumulate_column_absmax(weight.as_floats(), weight_max));
  TRY_VOID(smooth_scales(activation.as_floats(), weight_max, {alpha, scale_clamp_min}, scales));
  Outputs outputs;
  outputs["scales"] = {{scales.begin(), scales.end()}, activation.shape, {}};
  return outputs;
}

// `loss` and `loss_rtn` are the reference's output errors with and without GPTQ; the comparison reads the first.
Result<Outputs> gptq_weight(const GoldenCase& c) {
  TRY_VOID(c.allow_params({"dtype", "symmetric", "round_method", "group_size", "scale_type", "zero_point_type",
                           "damp_percent", "desc_act", "static_groups", "block_size", "loss", "loss_rtn"}));
  TRY(spec, c.spec());
  TRY(options, gptq_options(c));
  TRY(weight, c.input("weight"));
  TRY(x, c.input("inputs"));
  if (weight.shape.size() != 2) return not_yet("GPTQ of a weight that is no matrix");
  spec.qscheme = spec.group_size == 0 ? QScheme::per_channel : QScheme::per_group;
  spec.ch_axis = spec.group_size == 0 ? 0 : 1;
  spec.observer = min_max_observer_for(spec.qscheme);

  const auto columns = static_cast<size_t>(weight.shape[1]);
  HessianAccumulator accumulator(columns);
  TRY_VOID(accumulator.add(x.as_floats(), x.shape.size() == 3 ? x.shape[0] : 1));
  TRY(hessian, std::move(accumulator).finish());
  TRY(feedback, error_feedback_of(std::move(hessian), columns, options.damp_percent, options.desc_act));
  std::vector<float> values = weight.as_floats();
  std::vector<uint8_t> codes(values.size() * info_of(spec.dtype).code_bytes());
  TRY_VOID(gptq(feedback, spec, options, weight.shape[0], values, codes));
  Outputs outputs;
  outputs["weight_qdq"] = {{values.begin(), values.end()}, weight.shape, {}, output_error(x, weight, values)};
  return outputs;
}

}  // namespace conformance
