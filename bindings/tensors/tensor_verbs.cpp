// The verbs for one spec, and the choice between one and two stages.
#include "tensors/tensor_verbs.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "config/dialects/write.h"
#include "numeric/e8m0.h"
#include "observers/registry.h"
#include "quantize/block_float.h"
#include "quantize/quantize.h"
#include "tensors/staged_verbs.h"

namespace wasmquant::bindings {
namespace {

struct Input {
  QuantizationSpec spec;
  std::vector<uint64_t> shape;
  std::span<const float> x;
  Granularity granularity;
  std::vector<QParams> qparams;
  float second_scale = 1.0f;  // of scale_format e4m3
};

Result<Input> observed(const GivenTensor& tensor, const QuantizationSpec& spec) {
  Input in;
  in.spec = spec;
  TRY(shape, read_shape(tensor.shape));
  in.shape = std::move(shape);
  TRY(x, read_values(tensor.values, tensor.dtype, count_of(in.shape)));
  in.x = x;
  TRY(observation, observe_tensor(in.spec, in.x, in.shape));
  TRY_VOID(check_finite(observation.qparams));
  in.spec = observation.spec;  // the data may have decided its sign (RoundingGrid::sign_by_data)
  in.second_scale = observation.second_scale;
  in.granularity = std::move(observation.granularity);
  in.qparams = std::move(observation.qparams);
  return in;
}

// Exponent bytes in scale-shape order, from scales that are powers of two times 2^-fraction_bits. Smaller scales than
// 2^-127 have the byte of that.
void add_exponents(Parts& out, int fraction_bits) {
  TensorWork& w = work();
  w.exponents.resize(w.scale.size());
  for (size_t i = 0; i < w.scale.size(); ++i)
    w.exponents[i] = static_cast<uint8_t>(std::clamp(std::ilogb(w.scale[i]) + fraction_bits + kE8m0Bias, 0, 254));
  out.add("sharedExponents", region_of(std::span(w.exponents)));
}

// Computes codes, exponents and shifts; `qparams` become the unshifted steps.
void quantize_in_blocks(Input& in) {
  TensorWork& w = work();
  BlockFloatTensor blocks = quantize_blocks(in.granularity, in.spec, in.x);
  const int fraction_bits = block_float_of(in.spec.dtype).fraction_bits();
  std::memcpy(w.codes.data(), blocks.codes.data(), blocks.codes.size());
  w.shifts = std::move(blocks.shifts);
  for (size_t i = 0; i < in.qparams.size(); ++i)
    in.qparams[i] = {static_cast<float>(power_of_two(blocks.exponents[i] - kBlockExponentBias - fraction_bits)), 0};
}

Result<Parts> quantize_by(const GivenTensor& tensor, const QuantizationSpec& spec) {
  TRY(in, observed(tensor, spec));
  TensorWork& w = work();
  const DtypeInfo& info = info_of(in.spec.dtype);
  w.codes.resize(in.x.size() * code_bytes_of(in.spec));
  if (in.spec.scale_format == ScaleFormat::e8m0)  // codes and exponents of what can be stored
    for (QParams& q : in.qparams) q.scale = std::max(q.scale, 0x1p-127f);
  if (info.is_block())
    quantize_in_blocks(in);
  else
    quantize(in.granularity, in.spec, in.qparams, kernels::Path::real, in.x, 0, w.codes.data());
  Parts out;
  out.facts.set("spec", config::to_json(in.spec));
  out.facts.set("scaleShape", in.granularity.scale_shape);
  if (in.spec.scale_format == ScaleFormat::e4m3) out.facts.set("secondScale", static_cast<double>(in.second_scale));
  add_codes(out, in.spec, in.x.size());
  add_qparams(out, in.granularity, in.spec, in.qparams);
  if (info.is_block()) add_exponents(out, block_float_of(in.spec.dtype).fraction_bits());
  if (in.spec.scale_format == ScaleFormat::e8m0) add_exponents(out, 0);
  if (info.pair_shift) out.add("pairShifts", region_of(std::span(w.shifts)));
  return out;
}

Result<std::span<const float>> fake_quantize_by(const GivenTensor& tensor, const QuantizationSpec& spec) {
  TRY(in, observed(tensor, spec));
  std::vector<float>& y = work().values;
  y.resize(in.x.size());
  if (info_of(in.spec.dtype).is_block())
    fake_quantize_blocks(in.granularity, in.spec, in.x, y.data());
  else
    fake_quantize(in.granularity, in.spec, in.qparams, in.x, 0, y.data());
  return std::span<const float>(y);
}

Result<std::span<const float>> dequantize_by(const GivenCodes& given, const QuantizationSpec& spec) {
  TRY(shape, read_shape(given.shape));
  TRY(granularity, granularity_of(shape, spec));
  TRY_VOID(check_given(granularity, spec, given.given, given.codes, count_of(shape)));
  const std::vector<QParams> qparams = read_qparams(granularity, given.scale, given.zero_point);
  std::vector<float>& y = work().values;
  y.resize(count_of(shape));
  if (info_of(spec.dtype).is_block()) {
    BlockFloatTensor blocks;
    const BlockFloatFormat format = block_float_of(spec.dtype);
    blocks.codes.assign(pointer<const int8_t>(given.codes), pointer<const int8_t>(given.codes) + y.size());
    for (const QParams& q : qparams)
      blocks.exponents.push_back(
          static_cast<uint8_t>(std::ilogb(q.scale) + format.fraction_bits() + kBlockExponentBias));
    if (format.pair_shift) {
      const uint64_t pairs = granularity.outer * ((granularity.axis + 1) / 2) * granularity.inner;
      blocks.shifts.assign(pointer<const uint8_t>(given.shifts), pointer<const uint8_t>(given.shifts) + pairs);
    }
    dequantize_blocks(granularity, spec, blocks, y.data());
  } else {
    dequantize(granularity, spec, qparams, pointer<const uint8_t>(given.codes), y.size(), 0, y.data());
  }
  return std::span<const float>(y);
}

}  // namespace

Result<Parts> quantize_tensor(const GivenTensor& tensor, List<Diagnostic>& diagnostics) {
  TRY(specs, read_stages(tensor.spec, diagnostics));
  return specs.size() == 2 ? quantize_stages(tensor, specs) : quantize_by(tensor, specs[0]);
}

Result<std::span<const float>> fake_quantize_tensor(const GivenTensor& tensor, List<Diagnostic>& diagnostics) {
  TRY(specs, read_stages(tensor.spec, diagnostics));
  return specs.size() == 2 ? fake_quantize_stages(tensor, specs) : fake_quantize_by(tensor, specs[0]);
}

Result<std::span<const float>> dequantize_tensor(const GivenCodes& codes, List<Diagnostic>& diagnostics) {
  TRY(specs, read_stages(codes.spec, diagnostics));
  return specs.size() == 2 ? dequantize_stages(codes, specs) : dequantize_by(codes, specs[0]);
}

}  // namespace wasmquant::bindings
