// One tensor in memory: quantize, dequantize, fake-quantize. Contracts: web/lib/engine/module.ts.
#include <emscripten/bind.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "config/dialects/write.h"
#include "core/list.h"
#include "marshal.h"
#include "numeric/e8m0.h"
#include "observers/registry.h"
#include "quantize/block_float.h"
#include "quantize/quantize.h"
#include "tensor_input.h"

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

Result<Input> observed(Address address, const std::string& dtype, const std::string& shape_text,
                       const std::string& spec_text, List<Diagnostic>& diagnostics) {
  Input in;
  TRY(spec, read_spec(spec_text, diagnostics));
  in.spec = spec;
  TRY(shape, read_shape(shape_text));
  in.shape = std::move(shape);
  TRY(x, read_values(address, dtype, count_of(in.shape)));
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
void set_exponents(json::Value& out, int fraction_bits) {
  TensorWork& w = work();
  w.exponents.resize(w.scale.size());
  for (size_t i = 0; i < w.scale.size(); ++i)
    w.exponents[i] = static_cast<uint8_t>(std::clamp(std::ilogb(w.scale[i]) + fraction_bits + kE8m0Bias, 0, 254));
  out.set("sharedExponents", address(w.exponents.data()));
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

std::string quantize_tensor(Address values, std::string dtype, std::string shape, std::string spec) {
  List<Diagnostic> diagnostics;
  auto in = observed(values, dtype, shape, spec, diagnostics);
  if (!in) return fail(in.error(), diagnostics);
  TensorWork& w = work();
  const DtypeInfo& info = info_of(in->spec.dtype);
  w.codes.resize(in->x.size() * code_bytes_of(in->spec));
  if (in->spec.scale_format == ScaleFormat::e8m0)  // codes and exponents of what can be stored
    for (QParams& q : in->qparams) q.scale = std::max(q.scale, 0x1p-127f);
  if (info.is_block())
    quantize_in_blocks(*in);
  else
    quantize(in->granularity, in->spec, in->qparams, kernels::Path::real, in->x, 0, w.codes.data());
  json::Value out;
  out.set("spec", config::to_json(in->spec));
  out.set("codes", codes_json(in->spec, in->x.size()));
  out.set("scaleShape", in->granularity.scale_shape);
  set_qparams(out, in->granularity, in->spec, in->qparams);
  if (info.is_block()) set_exponents(out, block_float_of(in->spec.dtype).fraction_bits());
  if (in->spec.scale_format == ScaleFormat::e8m0) set_exponents(out, 0);
  if (info.pair_shift) {
    out.set("pairShifts", address(w.shifts.data()));
    out.set("pairCount", static_cast<uint64_t>(w.shifts.size()));
  }
  if (in->spec.scale_format == ScaleFormat::e4m3) out.set("secondScale", static_cast<double>(in->second_scale));
  return ok(std::move(out));
}

std::string fake_quantize_tensor(Address values, std::string dtype, std::string shape, std::string spec) {
  List<Diagnostic> diagnostics;
  auto in = observed(values, dtype, shape, spec, diagnostics);
  if (!in) return fail(in.error(), diagnostics);
  std::vector<float>& y = work().values;
  y.resize(in->x.size());
  if (info_of(in->spec.dtype).is_block())
    fake_quantize_blocks(in->granularity, in->spec, in->x, y.data());
  else
    fake_quantize(in->granularity, in->spec, in->qparams, in->x, 0, y.data());
  return values_reply(y);
}

std::string dequantize_tensor(Address codes, Address scale, Address zero_point, Address shifts, std::string shape_text,
                              std::string spec_text, std::string given) {
  List<Diagnostic> diagnostics;
  auto spec = read_spec(spec_text, diagnostics);
  if (!spec) return fail(spec.error(), diagnostics);
  auto shape = read_shape(shape_text);
  if (!shape) return fail(shape.error());
  auto granularity = granularity_of(*shape, *spec);
  if (!granularity) return fail(granularity.error());
  if (const Status fits = check_given(*granularity, *spec, given, codes, count_of(*shape)); !fits)
    return fail(fits.error());
  const std::vector<QParams> qparams = read_qparams(*granularity, scale, zero_point);
  std::vector<float>& y = work().values;
  y.resize(count_of(*shape));
  if (info_of(spec->dtype).is_block()) {
    BlockFloatTensor blocks;
    const BlockFloatFormat format = block_float_of(spec->dtype);
    blocks.codes.assign(pointer<const int8_t>(codes), pointer<const int8_t>(codes) + y.size());
    for (const QParams& q : qparams)
      blocks.exponents.push_back(
          static_cast<uint8_t>(std::ilogb(q.scale) + format.fraction_bits() + kBlockExponentBias));
    if (format.pair_shift) {
      const uint64_t pairs = granularity->outer * ((granularity->axis + 1) / 2) * granularity->inner;
      blocks.shifts.assign(pointer<const uint8_t>(shifts), pointer<const uint8_t>(shifts) + pairs);
    }
    dequantize_blocks(*granularity, *spec, blocks, y.data());
  } else {
    dequantize(*granularity, *spec, qparams, pointer<const uint8_t>(codes), y.size(), 0, y.data());
  }
  return values_reply(y);
}

}  // namespace
}  // namespace wasmquant::bindings

EMSCRIPTEN_BINDINGS(tensor_functions) {
  using namespace emscripten;
  using namespace wasmquant::bindings;
  function("quantizeTensor", &quantize_tensor);
  function("fakeQuantizeTensor", &fake_quantize_tensor);
  function("dequantizeTensor", &dequantize_tensor);
}
