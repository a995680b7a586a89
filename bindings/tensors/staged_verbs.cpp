#include "tensors/staged_verbs.h"

#include "config/dialects/write.h"
#include "core/message.h"
#include "observers/range_observer.h"

namespace wasmquant::bindings {
namespace {

struct StagedTensor {
  TwoStages stages;
  std::span<const float> x;
  TwoStages::Scales scales;
};

Result<StagedTensor> observed_in_stages(const GivenTensor& tensor, const List<QuantizationSpec>& specs) {
  TRY(shape, read_shape(tensor.shape));
  TRY(stages, TwoStages::create(specs[0], specs[1], shape));
  TRY(x, read_values(tensor.values, tensor.dtype, count_of(shape)));
  RangeObserver ranges(stages.granularity(), stages.code_spec());
  if (const int64_t index = ranges.update(x, 0); index >= 0)
    return error_at(ErrorCode::value_not_finite, "", "element {} is NaN or infinite", index);
  TwoStages::Scales scales = stages.scales_of(ranges.min(), ranges.max());
  TRY_VOID(check_finite(scales.of_codes));
  TRY_VOID(check_finite({&scales.other, 1}));
  TensorWork& w = work();
  w.codes.resize(x.size() * code_bytes_of(stages.code_spec()));
  stages.quantize(scales, x, 0, w.codes.data());
  return StagedTensor{std::move(stages), x, std::move(scales)};
}

}  // namespace

Result<Parts> quantize_stages(const GivenTensor& tensor, const List<QuantizationSpec>& specs) {
  TRY(t, observed_in_stages(tensor, specs));
  const QuantizationSpec& spec = t.stages.code_spec();
  json::Array written;
  for (const QuantizationSpec& stage : specs) written.push_back(config::to_json(stage));
  Parts out;
  out.facts.set("spec", std::move(written));
  out.facts.set("scaleShape", t.stages.granularity().scale_shape);
  out.facts.set("secondScale", static_cast<double>(t.scales.other.scale));
  add_codes(out, spec, t.x.size());
  add_qparams(out, t.stages.granularity(), spec, t.scales.of_codes);
  return out;
}

Result<std::span<const float>> fake_quantize_stages(const GivenTensor& tensor, const List<QuantizationSpec>& specs) {
  TRY(t, observed_in_stages(tensor, specs));
  TensorWork& w = work();
  w.values.resize(t.x.size());
  t.stages.dequantize(t.scales, w.codes.data(), t.x.size(), 0, w.values.data());
  return std::span<const float>(w.values);
}

Result<std::span<const float>> dequantize_stages(const GivenCodes& given, const List<QuantizationSpec>& specs) {
  TRY(shape, read_shape(given.shape));
  TRY(stages, TwoStages::create(specs[0], specs[1], shape));
  TRY_VOID(check_given(stages.granularity(), stages.code_spec(), given.given, given.codes, count_of(shape)));
  TwoStages::Scales scales;
  scales.of_codes = read_qparams(stages.granularity(), given.scale, given.zero_point);
  scales.other = {static_cast<float>(given.second_scale), 0};
  std::vector<float>& y = work().values;
  y.resize(count_of(shape));
  stages.dequantize(scales, pointer<const uint8_t>(given.codes), y.size(), 0, y.data());
  return std::span<const float>(y);
}

}  // namespace wasmquant::bindings
