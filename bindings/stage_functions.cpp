// Single tensors with two-stage specs (quantize/stages.h).
#include <emscripten/bind.h>

#include "config/dialects/write.h"
#include "core/list.h"
#include "marshal.h"
#include "observers/range_observer.h"
#include "quantize/stages.h"
#include "tensor_input.h"

namespace wasmquant::bindings {
namespace {

struct StagedTensor {
  List<QuantizationSpec> specs;
  TwoStages stages;
  std::span<const float> x;
  TwoStages::Scales scales;
};

Result<TwoStages> stages_of(const List<QuantizationSpec>& specs, const std::vector<uint64_t>& shape) {
  if (specs.size() != 2) return Error{ErrorCode::spec_invalid, "", "a list of two specs is needed here"};
  return TwoStages::create(specs[0], specs[1], shape);
}

Result<StagedTensor> observed_in_stages(Address address, const std::string& dtype, const std::string& shape_text,
                                        const std::string& specs_text, List<Diagnostic>& diagnostics) {
  TRY(specs, read_stages(specs_text, diagnostics));
  TRY(shape, read_shape(shape_text));
  TRY(stages, stages_of(specs, shape));
  TRY(x, read_values(address, dtype, count_of(shape)));
  RangeObserver ranges(stages.granularity(), stages.code_spec());
  if (const int64_t index = ranges.update(x, 0); index >= 0)
    return error_at(ErrorCode::value_not_finite, "", "element {} is NaN or infinite", index);
  TwoStages::Scales scales = stages.scales_of(ranges.min(), ranges.max());
  TRY_VOID(check_finite(scales.of_codes));
  TRY_VOID(check_finite({&scales.other, 1}));
  return StagedTensor{std::move(specs), std::move(stages), x, std::move(scales)};
}

std::string quantize_stages(Address values, std::string dtype, std::string shape, std::string specs) {
  List<Diagnostic> diagnostics;
  auto t = observed_in_stages(values, dtype, shape, specs, diagnostics);
  if (!t) return fail(t.error(), diagnostics);
  const QuantizationSpec& spec = t->stages.code_spec();
  TensorWork& w = work();
  w.codes.resize(t->x.size() * code_bytes_of(spec));
  t->stages.quantize(t->scales, t->x, 0, w.codes.data());
  json::Array written;
  for (const QuantizationSpec& stage : t->specs) written.push_back(config::to_json(stage));
  json::Value out;
  out.set("spec", std::move(written));
  out.set("codes", codes_json(spec, t->x.size()));
  out.set("scaleShape", t->stages.granularity().scale_shape);
  set_qparams(out, t->stages.granularity(), spec, t->scales.of_codes);
  out.set("secondScale", static_cast<double>(t->scales.other.scale));
  return ok(std::move(out));
}

std::string fake_quantize_stages(Address values, std::string dtype, std::string shape, std::string specs) {
  List<Diagnostic> diagnostics;
  auto t = observed_in_stages(values, dtype, shape, specs, diagnostics);
  if (!t) return fail(t.error(), diagnostics);
  TensorWork& w = work();
  w.codes.resize(t->x.size() * code_bytes_of(t->stages.code_spec()));
  w.values.resize(t->x.size());
  t->stages.quantize(t->scales, t->x, 0, w.codes.data());
  t->stages.dequantize(t->scales, w.codes.data(), t->x.size(), 0, w.values.data());
  return values_reply(w.values);
}

std::string dequantize_stages(Address codes, Address scale, Address zero_point, double second_scale,
                              std::string shape_text, std::string specs_text, std::string given) {
  List<Diagnostic> diagnostics;
  auto specs = read_stages(specs_text, diagnostics);
  if (!specs) return fail(specs.error(), diagnostics);
  auto shape = read_shape(shape_text);
  if (!shape) return fail(shape.error());
  auto stages = stages_of(*specs, *shape);
  if (!stages) return fail(stages.error());
  if (const Status fits = check_given(stages->granularity(), stages->code_spec(), given, codes, count_of(*shape));
      !fits)
    return fail(fits.error());
  TwoStages::Scales scales;
  scales.of_codes = read_qparams(stages->granularity(), scale, zero_point);
  scales.other = {static_cast<float>(second_scale), 0};
  std::vector<float>& y = work().values;
  y.resize(count_of(*shape));
  stages->dequantize(scales, pointer<const uint8_t>(codes), y.size(), 0, y.data());
  return values_reply(y);
}

}  // namespace
}  // namespace wasmquant::bindings

EMSCRIPTEN_BINDINGS(stage_functions) {
  using namespace emscripten;
  using namespace wasmquant::bindings;
  function("quantizeStages", &quantize_stages);
  function("fakeQuantizeStages", &fake_quantize_stages);
  function("dequantizeStages", &dequantize_stages);
}
