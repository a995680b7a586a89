#include "tensor_functions.h"

#include <cmath>
#include <cstring>

#include "config/parse.h"
#include "config/write.h"
#include "core/bytes.h"
#include "core/list.h"
#include "numeric/e8m0.h"
#include "observers/registry.h"
#include "quantize/block_float.h"
#include "quantize/quantize.h"

namespace wasmquant::bindings {
namespace {

// What a call works on; results stay here until the next call.
struct TensorWork {
  std::vector<float> widened;
  Bytes codes;
  std::vector<float> values, scale, zero_point, min, max;
  std::vector<uint8_t> exponents, shifts;
};
TensorWork& work() {
  static TensorWork instance;
  return instance;
}

Result<std::vector<uint64_t>> read_shape(const std::string& text) {
  TRY(value, json::parse(text));
  std::vector<uint64_t> shape;
  uint64_t count = 1;
  for (const json::Value& dimension : value.items()) {
    if (!dimension.is_integer() || dimension.as_integer() < 0) {
      return error_at(ErrorCode::argument_invalid, "shape", "found {}; dimensions are whole numbers, 0 or more",
                      json::write(value));
    }
    shape.push_back(static_cast<uint64_t>(dimension.as_integer()));
    // A 32-bit address space cannot hold more; the limit also keeps every product of this file exact.
    if (shape.back() != 0 && count > (uint64_t{1} << 32) / shape.back()) {
      return error_at(ErrorCode::shape_mismatch, "shape", "{} has more elements than memory can hold",
                      json::write(value));
    }
    count *= shape.back();
  }
  return shape;
}

uint64_t count_of(const std::vector<uint64_t>& shape) {
  uint64_t count = 1;
  for (const uint64_t dimension : shape) count *= dimension;
  return count;
}

Result<std::span<const float>> read_values(Address address, const std::string& dtype, uint64_t count) {
  if (dtype == "F32") return std::span<const float>(pointer<const float>(address), count);
  if (dtype != "F16" && dtype != "BF16") {
    return error_at(ErrorCode::dtype_unsupported, "dtype", "found \"{}\"; allowed are F32, F16 and BF16", dtype);
  }
  std::vector<float>& widened = work().widened;
  widened.resize(count);
  (dtype == "BF16" ? kernels::widen_bf16 : kernels::widen_f16)({pointer<const uint16_t>(address), count},
                                                               widened.data());
  return std::span<const float>(widened);
}

Result<QuantizationSpec> read_spec(const std::string& text, List<Diagnostic>& diagnostics) {
  TRY(value, json::parse(text));
  DiagnosticList list;
  const auto spec = config::parse_spec(value, "", config::TensorUse::weight, list);
  diagnostics = list.take();
  if (spec && list.errors() == 0) return *spec;
  const Diagnostic* first = diagnostics.empty() ? nullptr : &diagnostics.front();
  return Error{ErrorCode::spec_invalid, first == nullptr ? "" : first->where,
               first == nullptr ? "no spec" : first->message};
}

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
  if (in.spec.scale_format == ScaleFormat::e4m3)
    in.second_scale = second_scale_of(observation.min, observation.max, in.spec);
  in.granularity = std::move(observation.granularity);
  in.qparams = std::move(observation.qparams);
  return in;
}

std::string_view zero_point_type(const QuantizationSpec& spec) {
  return spec.zero_point_type == ZeroPointType::float32 ? "float32" : "int32";
}

// Scales and zero points in the order of the scale shape; zero points only for integer dtypes.
void set_qparams(json::Value& out, const Granularity& g, const QuantizationSpec& spec,
                 std::span<const QParams> qparams) {
  TensorWork& w = work();
  std::vector<float> internal(qparams.size());
  w.scale.resize(qparams.size());
  w.zero_point.resize(qparams.size());
  for (size_t i = 0; i < qparams.size(); ++i) internal[i] = qparams[i].scale;
  to_scale_shape_order(g, internal.data(), w.scale.data());
  for (size_t i = 0; i < qparams.size(); ++i) internal[i] = qparams[i].zero_point;
  to_scale_shape_order(g, internal.data(), w.zero_point.data());
  out.set("scale", address(w.scale.data()));
  out.set("zeroPoint", info_of(spec.dtype).is_integer ? address(w.zero_point.data()) : json::Value());
  out.set("zeroPointType", zero_point_type(spec));
}

// Exponent bytes in the order of the scale shape, from scales that are powers of two times 2^-fraction_bits.
void set_exponents(json::Value& out, int fraction_bits) {
  TensorWork& w = work();
  w.exponents.resize(w.scale.size());
  for (size_t i = 0; i < w.scale.size(); ++i)
    w.exponents[i] = static_cast<uint8_t>(std::ilogb(w.scale[i]) + fraction_bits + kE8m0Bias);
  out.set("sharedExponents", address(w.exponents.data()));
}

// Codes, exponents and shifts; `qparams` become the unshifted steps.
void quantize_in_blocks(Input& in) {
  TensorWork& w = work();
  BlockFloatTensor blocks = quantize_blocks(in.granularity, in.spec, in.x);
  const int fraction_bits = block_float_of(in.spec.dtype).fraction_bits();
  std::memcpy(w.codes.data(), blocks.codes.data(), blocks.codes.size());
  w.shifts = std::move(blocks.shifts);
  for (size_t i = 0; i < in.qparams.size(); ++i)
    in.qparams[i] = {static_cast<float>(power_of_two(blocks.exponents[i] - kBlockExponentBias - fraction_bits)), 0};
}

}  // namespace

std::string quantize_tensor(Address values, std::string dtype, std::string shape, std::string spec) {
  List<Diagnostic> diagnostics;
  auto in = observed(values, dtype, shape, spec, diagnostics);
  if (!in) return fail(in.error(), diagnostics);
  TensorWork& w = work();
  const DtypeInfo& info = info_of(in->spec.dtype);
  const uint32_t code_bytes = code_bytes_of(in->spec);
  w.codes.resize(in->x.size() * code_bytes);
  if (info.is_block())
    quantize_in_blocks(*in);
  else
    quantize(in->granularity, in->spec, in->qparams, kernels::Path::real, in->x, 0, w.codes.data());
  json::Value codes;
  codes.set("pointer", address(w.codes.data()));
  codes.set("count", static_cast<uint64_t>(in->x.size()));
  codes.set("bytes", static_cast<int64_t>(code_bytes));
  codes.set("signed", (info.is_integer && info.is_signed) || info.is_block());
  json::Value out;
  out.set("spec", config::to_json(in->spec));
  out.set("codes", std::move(codes));
  out.set("scaleShape", in->granularity.scale_shape);
  out.set("scaleCount", static_cast<uint64_t>(in->qparams.size()));
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
  json::Value out;
  out.set("pointer", address(y.data()));
  out.set("count", static_cast<uint64_t>(y.size()));
  return ok(std::move(out));
}

std::string dequantize_tensor(Address codes, Address scale, Address zero_point, Address shifts, std::string shape_text,
                              std::string spec_text) {
  List<Diagnostic> diagnostics;
  auto spec = read_spec(spec_text, diagnostics);
  if (!spec) return fail(spec.error(), diagnostics);
  auto shape = read_shape(shape_text);
  if (!shape) return fail(shape.error());
  auto granularity = granularity_of(*shape, *spec);
  if (!granularity) return fail(granularity.error());
  const uint64_t scales = granularity->scale_count();
  std::vector<float> internal(scales);
  std::vector<QParams> qparams(scales, QParams{1.0f, 0.0f});
  from_scale_shape_order(*granularity, pointer<const float>(scale), internal.data());
  for (uint64_t i = 0; i < scales; ++i) qparams[i].scale = internal[i];
  if (zero_point != 0) {
    from_scale_shape_order(*granularity, pointer<const float>(zero_point), internal.data());
    for (uint64_t i = 0; i < scales; ++i) qparams[i].zero_point = internal[i];
  }
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
  json::Value out;
  out.set("pointer", address(y.data()));
  out.set("count", static_cast<uint64_t>(y.size()));
  return ok(std::move(out));
}

BoundObserver::BoundObserver(std::string spec_text) {
  auto spec = read_spec(spec_text, diagnostics_);
  if (spec) {
    observer_ = make_observer(*spec);
  } else {
    error_ = spec.error();
  }
}

std::string BoundObserver::update(Address values, std::string dtype, std::string shape_text) {
  if (!observer_) return fail(error_, diagnostics_);
  auto shape = read_shape(shape_text);
  if (!shape) return fail(shape.error());
  auto x = read_values(values, dtype, count_of(*shape));
  if (!x) return fail(x.error());
  const Status status = observe(*observer_, batch_, *x, *shape);
  if (status) ++batch_;
  return reply(status);
}

std::string BoundObserver::next_pass() {
  if (!observer_) return fail(error_, diagnostics_);
  batch_ = 0;
  return reply(observer_->next_pass());
}

std::string BoundObserver::finish() {
  if (!observer_) return fail(error_, diagnostics_);
  auto found = observer_->finish();
  if (!found) return fail(found.error());
  const Granularity& g = found->granularity;
  TensorWork& w = work();
  w.min.resize(found->min.size());
  w.max.resize(found->max.size());
  to_scale_shape_order(g, found->min.data(), w.min.data());
  to_scale_shape_order(g, found->max.data(), w.max.data());
  json::Value out;
  out.set("count", static_cast<uint64_t>(found->qparams.size()));
  set_qparams(out, g, observer_->spec(), found->qparams);
  out.set("min", address(w.min.data()));
  out.set("max", address(w.max.data()));
  return ok(std::move(out));
}

std::string BoundObserver::merge(BoundObserver& other) {
  if (!observer_) return fail(error_, diagnostics_);
  if (!other.observer_) return fail(other.error_, other.diagnostics_);
  return reply(observer_->merge(*other.observer_));
}

void BoundObserver::reset() {
  batch_ = 0;
  if (observer_) observer_->reset();
}

}  // namespace wasmquant::bindings
