// Whole linear layers, and the algorithms that change them. Inputs are [batches, tokens, features].
#include "algorithms/hessian.h"
#include "algorithms/rounding/gpfq.h"
#include "algorithms/rounding/gptq.h"
#include "algorithms/scaling/bias_correction.h"
#include "algorithms/scaling/equalization.h"
#include "algorithms/scaling/smooth_quant.h"
#include "brevitas_specs.h"
#include "golden_case.h"

namespace conformance {

using namespace wasmquant;

namespace {

// x [tokens, columns] times the transpose of w [rows, columns].
std::vector<float> linear(const std::vector<float>& x, const std::vector<float>& w, size_t columns) {
  const size_t rows = w.size() / columns;
  std::vector<float> y(x.size() / columns * rows);
  for (size_t i = 0; i < y.size(); ++i) {
    double sum = 0;
    for (size_t j = 0; j < columns; ++j) sum += double{x[i / rows * columns + j]} * w[i % rows * columns + j];
    y[i] = static_cast<float>(sum);
  }
  return y;
}

void add_bias(std::vector<float>& y, const std::vector<float>& bias) {
  for (size_t i = 0; i < y.size(); ++i) y[i] += bias[i % bias.size()];
}

bool flag(const DialectCase& c, std::string_view name) {
  const json::Value* value = c.find(name);
  return value && value->is_bool() && value->as_bool();
}

std::vector<double> scales_of(const Observation& found) {
  std::vector<double> scales;
  for (const QParams& q : found.qparams) scales.push_back(q.scale);
  return scales;
}

// The scales stay where they were before the algorithm.
struct QuantizedLayer {
  Tensor x, weight;
  BrevitasTensor weight_settings;
  Observation weight_scales;
  size_t columns() const { return static_cast<size_t>(weight.shape[1]); }
};

Result<QuantizedLayer> layer_of(const DialectCase& c) {
  QuantizedLayer layer;
  TRY(x, c.input("x"));
  TRY(weight, c.input("weight"));
  if (weight.shape.size() != 2) return not_yet("a layer that is not linear");
  TRY(settings, brevitas_weight_of(c, c.find("weight_spec")));
  TRY(scales, observe_one(settings, weight));
  return QuantizedLayer{x, weight, settings, scales};
}

}  // namespace

// y of the first batch; y_zero of zeros shows the bias.
Result<std::string> brevitas_layer(const DialectCase& c) {
  TRY(layer, layer_of(c));
  TRY(bias, c.input("bias"));
  TRY(input, brevitas_input_of(c, c.find("input_spec")));
  TRY(input_scales, observe_all(input, layer.x));
  std::vector<float> values = bias.as_floats();
  const json::Value* bits = c.find("bias_bit_width");
  if (bits && bits->is_integer()) {
    const std::vector<QParams>& weight = layer.weight_scales.qparams;
    const double half = std::exp2(bits->as_integer() - 1);
    for (size_t i = 0; i < values.size(); ++i) {
      const float scale = input_scales.qparams[0].scale * weight[weight.size() == 1 ? 0 : i].scale;
      values[i] = static_cast<float>(std::clamp(std::nearbyint(double{values[i] / scale}), -half, half - 1)) * scale;
    }
  }
  const std::vector<float> w = fake_quantized(layer.weight_scales, layer.weight.as_floats(), layer.weight.shape);
  const Tensor first = batch_of(layer.x, 0);
  const std::vector<float> zeros(layer.columns());
  for (const auto& [role, x, shape] : {std::tuple{"y", first.as_floats(), first.shape},
                                       std::tuple{"y_zero", zeros, std::vector<uint64_t>{1, layer.columns()}}}) {
    std::vector<float> y = linear(fake_quantized(input_scales, x, shape), w, layer.columns());
    add_bias(y, values);
    AGREE(c.difference_by_rule(role, doubles(y)));
  }
  return std::string();
}

Result<std::string> brevitas_gptq(const DialectCase& c) {
  TRY(layer, layer_of(c));
  HessianAccumulator accumulator(layer.columns());
  TRY_VOID(accumulator.add(layer.x.as_floats(), layer.x.values.size() / layer.columns()));
  TRY(hessian, std::move(accumulator).finish());
  GptqOptions options;
  TRY(feedback, error_feedback_of(std::move(hessian), layer.columns(), options.damp_percent, flag(c, "act_order")));
  std::vector<float> values = layer.weight.as_floats();
  std::vector<uint8_t> codes(values.size() * code_bytes_of(layer.weight_settings.spec));
  TRY_VOID(gptq(feedback, layer.weight_settings.spec, options, layer.weight.shape[0], values, codes,
                layer.weight_scales.qparams));
  AGREE(c.difference_by_rule("scale", scales_of(layer.weight_scales)));
  return c.difference_by_rule("y", doubles(values));
}

Result<std::string> brevitas_gpfq(const DialectCase& c) {
  TRY(layer, layer_of(c));
  const std::vector<float> x = layer.x.as_floats();
  std::vector<float> quantized = x;
  if (c.source().find("0.10.") == std::string::npos) {  // which collects inputs before the layer's own quantizer
    TRY(input, brevitas_input_of(c, c.find("input_spec")));
    TRY(input_scales, observe_all(input, layer.x));
    quantized = fake_quantized(input_scales, x, layer.x.shape);
  }
  GpfqInputs inputs(layer.columns());
  TRY_VOID(inputs.add(x, quantized));
  inputs.finish();
  GpfqOptions options;
  options.act_order = flag(c, "act_order");
  std::vector<float> values = layer.weight.as_floats();
  std::vector<uint8_t> codes(values.size() * code_bytes_of(layer.weight_settings.spec));
  TRY_VOID(gpfq(inputs, layer.weight_settings.spec, layer.weight_scales.qparams, options, layer.weight.shape[0], values,
                codes));
  AGREE(c.difference_by_rule("scale", scales_of(layer.weight_scales)));
  return c.difference_by_rule("y", doubles(values));
}

Result<std::string> brevitas_equalization(const DialectCase& c) {
  TRY(weight, c.input("weight"));
  TRY(bias, c.input("bias"));
  TRY(weight2, c.input("weight2"));
  std::vector<float> w = weight.as_floats(), b = bias.as_floats(), w2 = weight2.as_floats();
  EqualizationOptions options;
  options.merge_bias = flag(c, "merge_bias");
  if (const json::Value* iterations = c.find("iterations"))
    options.iterations = static_cast<uint32_t>(iterations->as_integer());
  if (const json::Value* threshold = c.find("threshold")) options.threshold = threshold->as_number();
  EqualizedRegion region;
  region.channels = b.size();
  region.sources.push_back({w, b});
  region.sinks.push_back({w2, 1});
  TRY_VOID(equalize({&region, 1}, options));
  AGREE(c.difference_by_rule("weight", doubles(w)));
  AGREE(c.difference_by_rule("bias", doubles(b)));
  return c.difference_by_rule("weight2", doubles(w2));
}

Result<std::string> brevitas_smooth_quant(const DialectCase& c) {
  TRY(x, c.input("x"));
  TRY(weight, c.input("weight"));
  const json::Value* alpha = c.find("alpha");
  if (!alpha || !alpha->is_number()) return not_yet("no alpha");
  std::vector<float> values = weight.as_floats();
  const auto columns = static_cast<size_t>(weight.shape[1]);
  std::vector<float> activation_max(columns), weight_max(columns), scales(columns);
  TRY_VOID(accumulate_column_absmax(x.as_floats(), activation_max));
  TRY_VOID(accumulate_column_absmax(values, weight_max));
  TRY_VOID(smooth_scales(activation_max, weight_max, {alpha->as_number(), 0, 0, 1e-9}, scales));
  scale_columns(values, scales);
  AGREE(c.difference_by_rule("factors", doubles(scales)));
  return c.difference_by_rule("weight", doubles(values));
}

Result<std::string> brevitas_bias_correction(const DialectCase& c) {
  TRY(layer, layer_of(c));
  TRY(bias, c.input("bias"));
  TRY(input, brevitas_input_of(c, c.find("input_spec")));
  TRY(input_scales, observe_all(input, layer.x));
  const std::vector<float> w = layer.weight.as_floats();
  const std::vector<float> wq = fake_quantized(layer.weight_scales, w, layer.weight.shape);
  std::vector<float> corrected = bias.as_floats();
  if (!flag(c, "has_bias")) corrected.assign(corrected.size(), 0.0f);
  const std::vector<float> x = layer.x.as_floats(), xq = fake_quantized(input_scales, x, layer.x.shape);
  // wq xq instead of w x: what the weights change, and what the inputs do.
  std::vector<double> sums(layer.columns()), changes(layer.columns());
  for (size_t i = 0; i < x.size(); ++i) {
    sums[i % sums.size()] += x[i];
    changes[i % sums.size()] += double{x[i]} - xq[i];
  }
  const uint64_t tokens = x.size() / sums.size();
  correct_bias(w, wq, sums, tokens, corrected);
  correct_bias(wq, std::vector<float>(wq.size()), changes, tokens, corrected);
  return c.difference_by_rule("bias", doubles(corrected));
}

}  // namespace conformance
