// One tensor to codes and back, with scales from the min-max observer or given.
//   q: codes of the fake path · q_real, codes: codes of the export path · y: values of the fake path
#include "observers/registry.h"
#include "ops/ops.h"
#include "quantize/quantize.h"
#include "scale_outputs.h"

namespace conformance {

using namespace wasmquant;

namespace {

Produced codes_on(kernels::Path path, const Granularity& g, const QuantizationSpec& spec,
                  std::span<const QParams> qparams, std::span<const float> x, const std::vector<uint64_t>& shape) {
  std::vector<uint8_t> codes(x.size() * info_of(spec.dtype).code_bytes());
  quantize(g, spec, qparams, path, x, 0, codes.data());
  return codes_as_numbers(codes, spec.dtype, shape);
}

Outputs quantized(const Tensor& x, const Granularity& g, const QuantizationSpec& spec,
                  std::span<const QParams> qparams) {
  Outputs outputs;
  add_scales(outputs, "", g, spec, qparams);
  const std::vector<float> values = x.as_floats();
  outputs["q"] = codes_on(kernels::Path::fake, g, spec, qparams, values, x.shape);
  outputs["q_real"] = outputs["codes"] = codes_on(kernels::Path::real, g, spec, qparams, values, x.shape);
  std::vector<float> y(values.size());
  fake_quantize(g, spec, qparams, values, 0, y.data());
  outputs["y"] = {{y.begin(), y.end()}, x.shape, {}};
  return outputs;
}

}  // namespace

Result<Outputs> quantize_observed(const GoldenCase& c) {
  TRY_VOID(c.allow_params(
      {"dtype", "symmetric", "round_method", "qscheme", "ch_axis", "group_size", "scale_type", "zero_point_type"}));
  TRY(spec, c.spec());
  TRY(x, c.input("x"));
  TRY(observation, observe_tensor(spec, x.as_floats(), x.shape));
  return quantized(x, observation.granularity, spec, observation.qparams);
}

Result<Outputs> quantize_given(const GoldenCase& c) {
  TRY_VOID(c.allow_params(
      {"dtype", "symmetric", "round_method", "qscheme", "ch_axis", "group_size", "scale", "zero_point"}));
  TRY(spec, c.spec());
  TRY(scale, c.number("scale"));
  double zero_point = 0;
  if (c.param("zero_point")) {
    TRY(given, c.number("zero_point"));
    zero_point = given;
  }
  spec.symmetric = zero_point == 0;
  TRY(x, c.input("x"));
  TRY(g, granularity_of(x.shape, spec));
  const std::vector<QParams> qparams(static_cast<size_t>(g.scale_count()),
                                     QParams{static_cast<float>(scale), static_cast<float>(zero_point)});
  return quantized(x, g, spec, qparams);
}

}  // namespace conformance
