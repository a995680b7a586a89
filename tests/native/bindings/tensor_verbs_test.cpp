// Tensors in memory: quantized, decoded again, and everything that is refused on the way.
#include "tensors/tensor_verbs.h"

#include <cmath>

#include "bindings/bound_model.h"
#include "tensors/tensor_input.h"

namespace wasmquant::testing {
namespace {

const std::string kShape = "[2, 32]", kFloat32 = "F32";

std::vector<float> verb_values() {
  std::vector<float> x(64);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>((i * 37) % 64) / 16.0f - 2.0f;
  return x;
}

Result<Parts> quantized(const std::vector<float>& x, const std::string& spec, const std::string& shape = kShape,
                        const std::string& dtype = kFloat32) {
  List<Diagnostic> diagnostics;
  return quantize_tensor({address_of(x), dtype, shape, spec}, diagnostics);
}

TEST_CASE("tensor verbs: what is quantized and decoded again is what fake-quantize gives, for every kind of spec") {
  const struct {
    std::string spec, codes, zero_point;
    int64_t pairs;
  } rows[] = {
      {R"({"dtype": "int8", "qscheme": "per_channel", "ch_axis": 0})", "Int8Array", "\"Int32Array\"", 0},
      {R"({"dtype": "uint4", "qscheme": "per_group", "group_size": 16, "ch_axis": -1, "symmetric": false})",
       "Uint8Array", "\"Int32Array\"", 0},
      {R"({"dtype": "int16", "qscheme": "per_tensor"})", "Int16Array", "\"Int32Array\"", 0},
      {R"({"dtype": "fp8_e4m3", "qscheme": "per_tensor"})", "Uint8Array", "null", 0},
      {R"({"dtype": "fp4", "qscheme": "per_group", "group_size": 32, "ch_axis": -1, "scale_format": "e8m0"})",
       "Uint8Array", "null", 0},
      {R"({"dtype": "mx6", "qscheme": "per_group", "group_size": 16, "ch_axis": -1})", "Int8Array", "null", 32},
      {R"([{"dtype": "int4", "qscheme": "per_group", "group_size": 16, "ch_axis": -1},
           {"dtype": "fp8_e4m3", "qscheme": "per_tensor", "is_scale_quant": true}])",
       "Int8Array", "\"Int32Array\"", 0},
  };
  const std::vector<float> x = verb_values();
  for (const auto& row : rows) {
    CAPTURE(row.spec);
    const auto result = quantized(x, row.spec);
    CHECK(refusal(result) == "");
    if (!result) continue;
    const Parts& made = *result;
    const auto codes = values_in<uint8_t>(part_of(made, "codes"));
    const auto scale = values_in<float>(part_of(made, "scale"));
    std::vector<float> zero_point;
    std::vector<uint8_t> shifts;
    for (const std::string_view name : made.names) {
      if (name == "zeroPoint") zero_point = values_in<float>(part_of(made, name));
      if (name == "pairShifts") shifts = values_in<uint8_t>(part_of(made, name));
    }
    CHECK(static_cast<int64_t>(codes.size()) == 64 * made.facts["codeBytes"].as_integer());
    CHECK(zero_point.empty() == (row.zero_point == "null"));
    CHECK(static_cast<int64_t>(shifts.size()) == row.pairs);
    const double second = made.facts["secondScale"].is_number() ? made.facts["secondScale"].as_number() : 1;
    const std::string given = R"({"codes": ")" + row.codes + R"(", "zeroPoint": )" + row.zero_point +
                              R"(, "scaleShape": )" + json::write(made.facts["scaleShape"]) + R"(, "pairShifts": )" +
                              std::to_string(row.pairs) + "}";
    List<Diagnostic> diagnostics;
    const auto decoded =
        dequantize_tensor({address_of(codes), address_of(scale), zero_point.empty() ? 0 : address_of(zero_point),
                           shifts.empty() ? 0 : address_of(shifts), second, kShape, row.spec, given},
                          diagnostics);
    CHECK(refusal(decoded) == "");
    if (!decoded) continue;
    const std::vector<float> values(decoded->begin(), decoded->end());
    const auto fake = taken(fake_quantize_tensor({address_of(x), kFloat32, kShape, row.spec}, diagnostics));
    CHECK(values == std::vector<float>(fake.begin(), fake.end()));
    double noise = 0;
    for (size_t i = 0; i < x.size(); ++i) noise += std::fabs(double{values[i]} - x[i]);
    CHECK(noise / 64 < 0.2);
  }
}

TEST_CASE("tensor verbs: values of 16 bits are those of 32") {
  const std::vector<float> x = verb_values();
  std::vector<uint16_t> half(64), brain(64);
  kernels::narrow_f16(x, half.data());
  kernels::narrow_bf16(x, brain.data());
  const std::string spec = R"({"dtype": "int8", "qscheme": "per_tensor"})";
  const auto codes = values_in<uint8_t>(part_of(taken(quantized(x, spec)), "codes"));
  List<Diagnostic> diagnostics;
  const std::string f16 = "F16", bf16 = "BF16";
  CHECK(values_in<uint8_t>(
            part_of(taken(quantize_tensor({address_of(half), f16, kShape, spec}, diagnostics)), "codes")) == codes);
  CHECK(values_in<uint8_t>(
            part_of(taken(quantize_tensor({address_of(brain), bf16, kShape, spec}, diagnostics)), "codes")) == codes);
}

TEST_CASE("tensor verbs: refuse specs, shapes, dtypes and values") {
  std::vector<float> x = verb_values();
  const std::string int8 = R"({"dtype": "int8", "qscheme": "per_tensor"})";
  CHECK(refusal(quantized(x, "{")).substr(0, 12) == "json-invalid");
  CHECK(refusal(quantized(x, R"({"dtype": "int99"})")).substr(0, 19) == "spec-invalid /dtype");
  CHECK(refusal(quantized(x, "[" + int8 + "]")) == "spec-invalid : a list of specs has 2 stages, found 1");
  CHECK(refusal(quantized(x, R"({"dtype": "fp8_e4m3", "qscheme": "per_tensor", "is_scale_quant": true})")) ==
        "spec-invalid /is_scale_quant: only the second of two stages quantizes scales");
  CHECK(refusal(quantized(x, "[" + int8 + ", " + int8 + "]")).substr(0, 12) == "spec-invalid");
  CHECK(refusal(quantized(x, int8, "[-2]")) ==
        "argument-invalid shape: found [-2]; dimensions are whole numbers, 0 or more");
  CHECK(refusal(quantized(x, int8, kShape, "F64")) ==
        "dtype-unsupported dtype: found \"F64\"; it must be F32, F16 or BF16");
  const std::string stages = R"([{"dtype": "int4", "qscheme": "per_group", "group_size": 16, "ch_axis": -1},
           {"dtype": "fp8_e4m3", "qscheme": "per_tensor", "is_scale_quant": true}])";
  for (const std::string& spec : {int8, stages}) {
    x[9] = std::nanf("");
    CHECK(refusal(quantized(x, spec)) == "value-not-finite : element 9 is NaN or infinite");
  }
  const QParams infinite[] = {{1, 0}, {INFINITY, 0}};
  CHECK(refusal(check_finite(infinite)) ==
        "value-overflow data: the values of scale 1 span more than the largest float32; scale them down");
  CHECK(refusal(check_finite({infinite, 1})) == "");
}

TEST_CASE("tensor verbs: refuse codes and scales that are not those of the spec") {
  const std::vector<uint8_t> codes(64, 15), large(64, 16);
  const std::vector<float> scale(2, 1.0f), zero_point(2, 0.0f);
  const std::string uint4 = R"({"dtype": "uint4", "qscheme": "per_channel", "ch_axis": 0, "symmetric": false})";
  const auto decoded = [&](const std::string& given, const std::vector<uint8_t>& values) {
    List<Diagnostic> diagnostics;
    return refusal(dequantize_tensor(
        {address_of(values), address_of(scale), address_of(zero_point), 0, 1, kShape, uint4, given}, diagnostics));
  };
  const auto given = [](const std::string& array, const std::string& zero, const std::string& shape, int pairs) {
    return R"({"codes": ")" + array + R"(", "zeroPoint": )" + zero + R"(, "scaleShape": )" + shape +
           R"(, "pairShifts": )" + std::to_string(pairs) + "}";
  };
  CHECK(decoded(given("Uint8Array", "\"Int32Array\"", "[2]", 0), codes) == "");
  CHECK(decoded("{", codes).substr(0, 12) == "json-invalid");
  CHECK(decoded(given("Int8Array", "\"Int32Array\"", "[2]", 0), codes) ==
        "argument-invalid codes: is Int8Array; codes of uint4 are an Uint8Array");
  CHECK(decoded(given("Uint8Array", "\"Int32Array\"", "[1,2]", 0), codes) ==
        "shape-mismatch scaleShape: is [1,2]; a tensor of this shape and spec has [2]");
  CHECK(decoded(given("Uint8Array", "null", "[2]", 0), codes) ==
        "argument-invalid zeroPoint: is null; uint4 of this spec has Int32Array");
  CHECK(decoded(given("Uint8Array", "\"Int32Array\"", "[2]", 3), codes) ==
        "shape-mismatch pairShifts: has 3 elements, but this tensor has 0 pairs");
  CHECK(decoded(given("Uint8Array", "\"Int32Array\"", "[2]", 0), large) ==
        "argument-invalid codes: element 0 is 16; codes of uint4 are 0 to 15");
}

}  // namespace
}  // namespace wasmquant::testing
