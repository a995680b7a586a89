// Conversions of single numbers: decode, casts, roundings.
#include "numeric/e8m0.h"
#include "numeric/rounding.h"
#include "ops/ops.h"
#include "quantize/quantize.h"

namespace conformance {

using namespace wasmquant;

namespace {

struct Codes {
  std::vector<uint8_t> bytes;
  Dtype dtype;

  Produced produced() const {
    Produced p;
    p.codes_of = dtype;
    const uint32_t width = info_of(dtype).code_bytes();
    for (size_t i = 0; i < bytes.size(); i += width)
      p.values.push_back(width == 1 ? bytes[i] : bytes[i] | bytes[i + 1] << 8);
    return p;
  }
};

QuantizationSpec float_spec(Dtype dtype) {
  QuantizationSpec spec;
  spec.dtype = dtype;
  return spec;
}

Produced values_of(const Codes& codes, const Granularity& g, float scale) {
  const size_t count = codes.bytes.size() / info_of(codes.dtype).code_bytes();
  std::vector<float> y(count);
  const QParams qparams{scale, 0};
  dequantize(g, float_spec(codes.dtype), {&qparams, 1}, codes.bytes.data(), count, 0, y.data());
  return {{y.begin(), y.end()}, {}, {}};
}

Result<Dtype> float_dtype(const GoldenCase& c) {
  TRY(dtype, c.dtype());
  if (info_of(dtype).is_integer) return not_yet("cast to an integer");
  return dtype;
}

// Codes of x / scale by the library's one way to quantize, and their values times scale.
Result<Outputs> cast_with_scale(const GoldenCase& c, Dtype dtype, float scale, std::string code_role) {
  TRY(x, c.input("x"));
  const std::vector<float> values = x.as_floats();
  TRY(g, granularity_of({values.size()}, float_spec(dtype)));
  Codes codes{std::vector<uint8_t>(values.size() * info_of(dtype).code_bytes()), dtype};
  const QParams qparams{scale, 0};
  quantize(g, float_spec(dtype), {&qparams, 1}, kernels::Path::real, values, 0, codes.bytes.data());
  std::vector<float> y(values.size());
  fake_quantize(g, float_spec(dtype), {&qparams, 1}, values, 0, y.data());
  return Outputs{{std::move(code_role), codes.produced()}, {"values", {{y.begin(), y.end()}, {}, {}}}};
}

}  // namespace

Result<Outputs> decode(const GoldenCase& c) {
  TRY_VOID(c.allow_params({"dtype"}));
  TRY(name, c.word("dtype"));
  if (name == "e8m0") {
    TRY(bytes, c.input("codes"));
    Outputs outputs;
    for (const double byte : bytes.values)
      outputs["values"].values.push_back(decode_e8m0(static_cast<uint8_t>(static_cast<int32_t>(byte))));
    return outputs;
  }
  TRY(dtype, float_dtype(c));
  TRY(stored, c.input("codes"));
  Codes codes{{}, dtype};
  for (const double code : stored.values) {
    const auto bits = static_cast<uint32_t>(static_cast<int32_t>(code));
    codes.bytes.push_back(static_cast<uint8_t>(bits));
    if (info_of(dtype).code_bytes() == 2) codes.bytes.push_back(static_cast<uint8_t>(bits >> 8));
  }
  TRY(g, granularity_of({stored.values.size()}, float_spec(dtype)));
  return Outputs{{"values", values_of(codes, g, 1.0f)}};
}

Result<Outputs> cast(const GoldenCase& c) {
  TRY_VOID(c.allow_params({"dtype"}));
  TRY(dtype, float_dtype(c));
  if (!info_of(dtype).is_plain_cast()) return not_yet("unclamped cast to " + std::string(info_of(dtype).name));
  return cast_with_scale(c, dtype, 1.0f, "bits");
}

Result<Outputs> cast_saturate(const GoldenCase& c) {
  TRY_VOID(c.allow_params({"dtype", "scale"}));
  TRY(dtype, float_dtype(c));
  if (info_of(dtype).is_plain_cast()) return not_yet("saturating cast to " + std::string(info_of(dtype).name));
  if (!c.param("scale")) return cast_with_scale(c, dtype, 1.0f, "codes");
  TRY(scale, c.number("scale"));
  return cast_with_scale(c, dtype, static_cast<float>(scale), "codes");
}

Result<Outputs> cast_nonsaturating(const GoldenCase& c) {
  TRY_VOID(c.allow_params({"dtype"}));
  TRY(dtype, float_dtype(c));
  const FloatFormat format = float_format_of(dtype);
  if (!format.has_nan()) return not_yet("a cast without saturation to a format without specials");
  TRY(x, c.input("x"));
  Outputs outputs;
  for (const float v : x.as_floats())
    outputs["values"].values.push_back(wasmquant::decode(format, encode(format, v, Overflow::infinity)));
  return outputs;
}

Result<Outputs> encode_e8m0_scale(const GoldenCase& c) {
  TRY_VOID(c.allow_params({}));
  TRY(scale, c.input("scale"));
  Outputs outputs;
  for (const float v : scale.as_floats()) outputs["bytes"].values.push_back(export_e8m0(v));
  return outputs;
}

Result<Outputs> round(const GoldenCase& c) {
  constexpr std::pair<const char*, RoundMethod> kRoles[] = {{"half_even", RoundMethod::half_even},
                                                            {"round", RoundMethod::round},
                                                            {"half_away", RoundMethod::half_away},
                                                            {"true_floor", RoundMethod::floor}};
  TRY_VOID(c.allow_params({}));
  TRY(x, c.input("x"));
  Outputs outputs;
  for (const auto& [role, method] : kRoles) {
    Produced& produced = outputs[role];
    for (const float v : x.as_floats()) produced.values.push_back(apply_rounding(method, v));
  }
  return outputs;
}

}  // namespace conformance
