// Values, codes, specs and parameters of scales from JavaScript, checked before they are used; replies with values.
#include "tensors/tensor_input.h"

#include <cmath>

#include "core/message.h"
#include "kernels/kernels.h"
#include "tools/quark/quark_config.h"

namespace wasmquant::bindings {
namespace {

std::string_view zero_point_type(const QuantizationSpec& spec) {
  return spec.zero_point_type == ZeroPointType::float32 ? "float32" : "int32";
}

std::string_view array_of_codes(const QuantizationSpec& spec) {
  const DtypeInfo& info = info_of(spec.dtype);
  const bool is_signed = (info.is_integer && info.is_signed) || info.is_block();
  switch (code_bytes_of(spec)) {
    case 1:
      return is_signed ? "Int8Array" : "Uint8Array";
    case 2:
      return is_signed ? "Int16Array" : "Uint16Array";
    default:
      return "Int32Array";
  }
}

// The largest bit pattern of a float's code, and the range of an integer's.
Status check_codes(const QuantizationSpec& spec, Address at, uint64_t count) {
  const DtypeInfo& info = info_of(spec.dtype);
  const uint32_t bytes = code_bytes_of(spec), bits = code_bits_of(spec);
  if (info.is_block() || bits == 8 * bytes) return {};
  const int64_t low = info.is_integer ? info.quant_min : 0;
  const int64_t high = info.is_integer ? info.quant_max : (int64_t{1} << bits) - 1;
  const bool is_signed = info.is_integer && info.is_signed;
  for (uint64_t i = 0; i < count; ++i) {
    int64_t code = 0;
    if (bytes == 1) code = is_signed ? pointer<const int8_t>(at)[i] : pointer<const uint8_t>(at)[i];
    if (bytes == 2) code = is_signed ? pointer<const int16_t>(at)[i] : pointer<const uint16_t>(at)[i];
    if (bytes == 4) code = pointer<const int32_t>(at)[i];
    if (code < low || code > high)
      return error_at(ErrorCode::argument_invalid, "codes", "element {} is {}; codes of {} are {} to {}", i, code,
                      info.name, low, high);
  }
  return {};
}

}  // namespace

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
    // The limit of a 32-bit address space also keeps every product in this file exact.
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
    return error_at(ErrorCode::dtype_unsupported, "dtype", "found \"{}\"; it must be F32, F16 or BF16", dtype);
  }
  std::vector<float>& widened = work().widened;
  widened.resize(count);
  (dtype == "BF16" ? kernels::widen_bf16 : kernels::widen_f16)({pointer<const uint16_t>(address), count},
                                                               widened.data());
  return std::span<const float>(widened);
}

Result<List<QuantizationSpec>> read_stages(const std::string& text, List<Diagnostic>& diagnostics) {
  TRY(value, json::parse(text));
  DiagnosticList list;
  List<QuantizationSpec> stages;
  if (value.is_array()) {
    const json::Array& items = value.items();
    if (items.size() != 2)
      return error_at(ErrorCode::spec_invalid, "", "a list of specs has 2 stages, found {}", items.size());
    for (size_t i = 0; i < items.size(); ++i)
      if (const auto spec = config::parse_spec(items[i], text_of("/{}", i), config::TensorSlot::weight, list))
        stages.push_back(*spec);
  } else if (const auto spec = config::parse_spec(value, "", config::TensorSlot::weight, list)) {
    stages.push_back(*spec);
  }
  const bool is_usable = list.errors() == 0 && !stages.empty();
  diagnostics = list.take();
  if (is_usable && stages.size() == 1 && stages.front().is_scale_quant)
    return Error{ErrorCode::spec_invalid, "/is_scale_quant", "only the second of two stages quantizes scales"};
  if (is_usable) return stages;
  const Diagnostic* first = diagnostics.empty() ? nullptr : &diagnostics.front();
  return Error{ErrorCode::spec_invalid, first == nullptr ? "" : first->where,
               first == nullptr ? "no spec" : first->message};
}

Result<QuantizationSpec> read_spec(const std::string& text, List<Diagnostic>& diagnostics) {
  TRY(stages, read_stages(text, diagnostics));
  if (stages.size() != 1) return Error{ErrorCode::spec_invalid, "", "one spec is needed here, found a list"};
  return stages.front();
}

void add_codes(Parts& out, const QuantizationSpec& spec, size_t count) {
  const DtypeInfo& info = info_of(spec.dtype);
  out.facts.set("codeBytes", static_cast<int64_t>(code_bytes_of(spec)));
  out.facts.set("signedCodes", (info.is_integer && info.is_signed) || info.is_block());
  out.add("codes", {work().codes.data(), count * code_bytes_of(spec)});
}

void add_qparams(Parts& out, const Granularity& g, const QuantizationSpec& spec, std::span<const QParams> qparams) {
  TensorWork& w = work();
  std::vector<float> internal(qparams.size());
  w.scale.resize(qparams.size());
  w.zero_point.resize(qparams.size());
  for (size_t i = 0; i < qparams.size(); ++i) internal[i] = qparams[i].scale;
  to_scale_shape_order(g, internal.data(), w.scale.data());
  for (size_t i = 0; i < qparams.size(); ++i) internal[i] = qparams[i].zero_point;
  to_scale_shape_order(g, internal.data(), w.zero_point.data());
  out.add("scale", region_of(std::span(w.scale)));
  if (info_of(spec.dtype).is_integer) out.add("zeroPoint", region_of(std::span(w.zero_point)));
  out.facts.set("zeroPointType", zero_point_type(spec));
}

std::vector<QParams> read_qparams(const Granularity& g, Address scale, Address zero_point) {
  const uint64_t count = g.scale_count();
  std::vector<float> internal(count);
  std::vector<QParams> qparams(count, QParams{1.0f, 0.0f});
  from_scale_shape_order(g, pointer<const float>(scale), internal.data());
  for (uint64_t i = 0; i < count; ++i) qparams[i].scale = internal[i];
  if (zero_point == 0) return qparams;
  from_scale_shape_order(g, pointer<const float>(zero_point), internal.data());
  for (uint64_t i = 0; i < count; ++i) qparams[i].zero_point = internal[i];
  return qparams;
}

Status check_finite(std::span<const QParams> qparams) {
  for (size_t i = 0; i < qparams.size(); ++i)
    if (!std::isfinite(qparams[i].scale) || !std::isfinite(qparams[i].zero_point))
      return error_at(ErrorCode::value_overflow, "data",
                      "the values of scale {} span more than the largest float32; scale them down", i);
  return {};
}

Status check_given(const Granularity& g, const QuantizationSpec& spec, const std::string& given_text, Address codes,
                   uint64_t count) {
  TRY(given, json::parse(given_text));
  const DtypeInfo& info = info_of(spec.dtype);
  if (const std::string_view wanted = array_of_codes(spec); given["codes"].as_string() != wanted)
    return error_at(ErrorCode::argument_invalid, "codes", "is {}; codes of {} are an {}", given["codes"].as_string(),
                    info.name, wanted);
  json::Value wanted;
  wanted.set("scaleShape", g.scale_shape);
  if (!(given["scaleShape"] == wanted["scaleShape"]))
    return error_at(ErrorCode::shape_mismatch, "scaleShape", "is {}; a tensor of this shape and spec has {}",
                    json::write(given["scaleShape"]), json::write(wanted["scaleShape"]));
  const json::Value& zero_point = given["zeroPoint"];
  const std::string_view array = zero_point_type(spec) == "float32" ? "Float32Array" : "Int32Array";
  if (zero_point.is_null() ? info.is_integer && !spec.symmetric : !info.is_integer || zero_point.as_string() != array)
    return error_at(ErrorCode::argument_invalid, "zeroPoint", "is {}; {} of this spec has {}",
                    zero_point.is_null() ? "null" : zero_point.as_string(), info.name,
                    info.is_integer ? array : std::string_view("null"));
  const uint64_t pairs = info.pair_shift ? g.outer * ((g.axis + 1) / 2) * g.inner : 0;
  if (given["pairShifts"].as_integer() != static_cast<int64_t>(pairs))
    return error_at(ErrorCode::shape_mismatch, "pairShifts", "has {} elements, but this tensor has {} pairs",
                    given["pairShifts"].as_integer(), pairs);
  return check_codes(spec, codes, count);
}

}  // namespace wasmquant::bindings
