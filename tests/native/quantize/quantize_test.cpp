// Quantizing by runs against the formulas element by element, over every dtype, granularity and path; pieces give the
// codes of the whole.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "quantize/quantize.h"
#include "random_values.h"

using namespace wasmquant;
using kernels::Path;
using Shape = std::vector<uint64_t>;

namespace {

kernels::ErrorSums quantization_error_of(const Granularity& g, const QuantizationSpec& spec,
                                         std::span<const QParams> qparams, std::span<const float> x,
                                         const uint8_t* codes, uint64_t begin) {
  kernels::ErrorSums sums;
  append_quantization_error(g, spec, qparams, x, codes, begin, sums);
  return sums;
}

struct QuantizeSetting {
  Shape shape;
  QuantizationSpec spec;
};

// Every dtype with every kind of run: one scale, rows, columns, groups inside rows, groups across rows.
std::vector<QuantizeSetting> quantize_settings() {
  std::vector<QuantizeSetting> all;
  for (const DtypeInfo& dtype : kDtypes) {
    if (dtype.is_block()) continue;
    for (const bool symmetric : {true, false})
      for (const ZeroPointType zero_point_type : {ZeroPointType::int32, ZeroPointType::float32})
        for (const auto& [qscheme, ch_axis, group_size] : {std::tuple{QScheme::per_tensor, 0, 0},
                                                           {QScheme::per_channel, 0, 0},
                                                           {QScheme::per_channel, -1, 0},
                                                           {QScheme::per_group, -1, 40},
                                                           {QScheme::per_group, 0, 3},
                                                           {QScheme::per_block, 0, 0}}) {
          if (!dtype.is_integer && !symmetric) continue;
          QuantizationSpec spec;
          spec.dtype = dtype.dtype;
          spec.exponent_bits = 4, spec.mantissa_bits = 5;  // minifloat
          spec.block_rows = 4, spec.block_columns = 128;
          spec.symmetric = symmetric;
          spec.zero_point_type = zero_point_type;
          spec.qscheme = qscheme;
          spec.ch_axis = ch_axis;
          spec.group_size = group_size;
          all.push_back({{6, 520}, spec});                           // more columns than one patch holds
          if (!dtype.is_integer && qscheme == QScheme::per_group) {  // a short last group
            spec.group_size = ch_axis == 0 ? 4 : 32;
            all.push_back({{6, 520}, spec});
          }
        }
  }
  return all;
}

std::vector<QParams> random_qparams(size_t count, const QuantizationSpec& spec) {
  std::mt19937 random(7);
  std::uniform_real_distribution<float> range(0.5f, 3.0f);
  std::vector<QParams> qparams(count);
  for (QParams& q : qparams) {
    const float low = -range(random), high = range(random);
    q = qparams_of(low, high, spec);
  }
  return qparams;
}

size_t quantize_elements_of(const Granularity& g) { return static_cast<size_t>(g.element_count()); }
size_t scales_of(const Granularity& g) { return static_cast<size_t>(g.scale_count()); }

std::vector<size_t> scale_of_elements(const Granularity& g) {
  std::vector<size_t> scales;
  for_each_run(g, 0, g.element_count(), [&](const Run& run) {
    for (uint64_t i = 0; i < run.count; ++i) scales.push_back(static_cast<size_t>(run.scale + i * run.scale_stride));
  });
  return scales;
}

int32_t code_at(const std::vector<uint8_t>& codes, size_t i, const DtypeInfo& dtype) {
  if (dtype.code_bytes() == 4) {
    int32_t code;
    std::memcpy(&code, &codes[4 * i], 4);
    return code;
  }
  if (dtype.code_bytes() == 2) {
    int16_t code;
    std::memcpy(&code, &codes[2 * i], 2);
    return dtype.is_signed ? code : static_cast<uint16_t>(code);
  }
  return dtype.is_signed ? static_cast<int8_t>(codes[i]) : codes[i];
}

// One integer on the given path, straight from the formula.
float slow_code(float x, const QParams& q, const DtypeInfo& dtype, Path path) {
  const float t = x * (1.0f / q.scale);
  const float code = path == Path::fake ? std::nearbyint(t) + q.zero_point : std::nearbyint(t + q.zero_point);
  return std::clamp(code, static_cast<float>(dtype.quant_min), static_cast<float>(dtype.quant_max));
}

}  // namespace

TEST_CASE("integers: codes and values of every granularity match the formula") {
  for (const QuantizeSetting& setting : quantize_settings()) {
    const DtypeInfo& dtype = info_of(setting.spec.dtype);
    if (!dtype.is_integer) continue;
    CAPTURE(dtype.name);
    const bool fractional = !setting.spec.symmetric && setting.spec.zero_point_type == ZeroPointType::float32;
    const auto g = granularity_of(setting.shape, setting.spec);
    REQUIRE(static_cast<bool>(g));
    const std::vector<float> x = normal_values(quantize_elements_of(*g), 3, 0.3f);
    const std::vector<QParams> qparams = random_qparams(scales_of(*g), setting.spec);
    const std::vector<size_t> scale = scale_of_elements(*g);
    for (const Path path : {Path::fake, Path::real}) {
      std::vector<uint8_t> codes(x.size() * dtype.code_bytes());
      quantize(*g, setting.spec, qparams, path, x, 0, codes.data());
      std::vector<float> y(x.size());
      dequantize(*g, setting.spec, qparams, codes.data(), x.size(), 0, y.data());
      uint64_t wrong_codes = 0, wrong_values = 0;
      for (size_t i = 0; i < x.size(); ++i) {
        const QParams& q = qparams[scale[i]];
        const float code = slow_code(x[i], q, dtype, fractional ? Path::real : path);
        wrong_codes += static_cast<float>(code_at(codes, i, dtype)) != code;
        wrong_values += y[i] != (code - q.zero_point) * q.scale;
      }
      CHECK(wrong_codes == 0);
      CHECK(wrong_values == 0);
    }
    std::vector<float> y(x.size());
    fake_quantize(*g, setting.spec, qparams, x, 0, y.data());
    uint64_t wrong = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const QParams& q = qparams[scale[i]];
      wrong += y[i] != (slow_code(x[i], q, dtype, Path::fake) - q.zero_point) * q.scale;
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("floats: every granularity gives the code of x / scale") {
  for (const QuantizeSetting& setting : quantize_settings()) {
    const DtypeInfo& dtype = info_of(setting.spec.dtype);
    if (dtype.is_integer || dtype.is_plain_cast()) continue;
    CAPTURE(dtype.name);
    const FloatFormat format = float_format_of(setting.spec);
    const auto g = granularity_of(setting.shape, setting.spec);
    REQUIRE(static_cast<bool>(g));
    const std::vector<float> x = normal_values(quantize_elements_of(*g), 4, 0.3f);
    const std::vector<QParams> qparams = random_qparams(scales_of(*g), setting.spec);
    const std::vector<size_t> scale = scale_of_elements(*g);
    const size_t bytes = code_bytes_of(setting.spec);
    std::vector<uint8_t> codes(x.size() * bytes);
    quantize(*g, setting.spec, qparams, Path::real, x, 0, codes.data());
    std::vector<float> y(x.size()), fake(x);
    dequantize(*g, setting.spec, qparams, codes.data(), x.size(), 0, y.data());
    fake_quantize(*g, setting.spec, qparams, fake, 0, fake.data());
    uint64_t wrong = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const float s = qparams[scale[i]].scale;
      const uint32_t code = encode(format, x[i] / s, Overflow::saturate);
      uint32_t stored = 0;
      std::memcpy(&stored, &codes[i * bytes], bytes);
      const float value = decode(format, code) * s;
      wrong += stored != code || y[i] != value || fake[i] != value;
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("plain casts: two-byte codes, scales untouched") {
  QuantizationSpec spec;
  const std::vector<float> x = {1.0f, -2.5f, 1.00390625f, 1e30f};
  for (const auto& [dtype, expected] :
       {std::pair{Dtype::bfloat16, std::vector<uint16_t>{0x3F80, 0xC020, 0x3F80, 0x714A}},
        {Dtype::float16, std::vector<uint16_t>{0x3C00, 0xC100, 0x3C04, 0x7C00}}}) {
    spec.dtype = dtype;
    const auto g = granularity_of({4}, spec);
    std::vector<uint16_t> bits(4);
    quantize(*g, spec, {}, Path::real, x, 0, reinterpret_cast<uint8_t*>(bits.data()));
    CHECK(bits == expected);
    std::vector<float> y(4), fake(4);
    dequantize(*g, spec, {}, reinterpret_cast<const uint8_t*>(bits.data()), 4, 0, y.data());
    fake_quantize(*g, spec, {}, x, 0, fake.data());
    CHECK(y[1] == -2.5f);
    CHECK(y == fake);
  }
}

TEST_CASE("the two paths differ at ties with odd zero points") {
  QuantizationSpec spec;
  spec.symmetric = false;
  const auto g = granularity_of({4}, spec);
  const std::vector<float> x = {0.5f, 1.5f, -0.5f, 2.0f};
  const std::vector<QParams> qparams = {{1.0f, 1.0f}};
  std::vector<uint8_t> codes(4);
  quantize(*g, spec, qparams, Path::fake, x, 0, codes.data());
  CHECK(codes == std::vector<uint8_t>{1, 3, 1, 3});
  quantize(*g, spec, qparams, Path::real, x, 0, codes.data());
  CHECK(codes == std::vector<uint8_t>{2, 2, 0, 3});
  spec.round_method = RoundMethod::floor;
  quantize(*g, spec, qparams, Path::fake, x, 0, codes.data());
  CHECK(codes == std::vector<uint8_t>{1, 2, 0, 3});
  spec.round_method = RoundMethod::round;
  quantize(*g, spec, qparams, Path::fake, x, 0, codes.data());
  CHECK(codes == std::vector<uint8_t>{2, 3, 1, 3});
}

TEST_CASE("quantizing with its error gives the codes and the error of doing both in turn") {
  std::vector<QuantizeSetting> all = quantize_settings();
  for (size_t i = 0, count = all.size(); i < count;
       ++i) {  // runs that blocks of the sums are cut by, and that cut them
    QuantizeSetting setting = all[i];
    if (!info_of(setting.spec.dtype).is_integer || setting.spec.qscheme != QScheme::per_group) continue;
    for (const int64_t group_size : {32, 128, 1024, 2048}) {
      setting.shape = {3, 2048};
      setting.spec.ch_axis = -1;
      setting.spec.group_size = group_size;
      all.push_back(setting);
    }
  }
  for (const QuantizeSetting& setting : all) {
    const size_t bytes = code_bytes_of(setting.spec);
    const auto g = granularity_of(setting.shape, setting.spec);
    REQUIRE(static_cast<bool>(g));
    std::vector<float> x = normal_values(quantize_elements_of(*g), 7, 0.3f);
    x[x.size() / 2] = std::numeric_limits<float>::quiet_NaN();
    const std::vector<QParams> qparams = random_qparams(scales_of(*g), setting.spec);
    std::vector<uint8_t> expected(x.size() * bytes), codes(expected.size());
    for (const size_t begin : {size_t{0}, size_t{5}, std::min(kErrorBlock, x.size() - 1)}) {
      const std::span<const float> part = std::span(x).subspan(begin);
      quantize(*g, setting.spec, qparams, Path::real, part, begin, expected.data());
      const kernels::ErrorSums error = quantization_error_of(*g, setting.spec, qparams, part, expected.data(), begin);
      const kernels::ErrorSums found = quantize_measured(*g, setting.spec, qparams, part, begin, codes.data());
      CHECK(codes == expected);
      CHECK(found.count == error.count);
      CHECK(found.max_abs == error.max_abs);
      CHECK(found.signal == error.signal);
      CHECK(found.quantized == error.quantized);
      CHECK(found.noise == error.noise);
    }
  }
}

TEST_CASE("pieces of any size give the codes, values and errors of the whole") {
  for (const QuantizeSetting& setting : quantize_settings()) {
    const size_t bytes = code_bytes_of(setting.spec);
    const auto g = granularity_of(setting.shape, setting.spec);
    REQUIRE(static_cast<bool>(g));
    const std::vector<float> x = normal_values(quantize_elements_of(*g), 5, 0.3f);
    const std::vector<QParams> qparams = random_qparams(scales_of(*g), setting.spec);
    std::vector<uint8_t> whole(x.size() * bytes);
    std::vector<float> whole_y(x.size()), whole_fake(x.size());
    quantize(*g, setting.spec, qparams, Path::fake, x, 0, whole.data());
    dequantize(*g, setting.spec, qparams, whole.data(), x.size(), 0, whole_y.data());
    fake_quantize(*g, setting.spec, qparams, x, 0, whole_fake.data());
    const kernels::ErrorSums whole_error = quantization_error_of(*g, setting.spec, qparams, x, whole.data(), 0);
    for (const size_t piece : {size_t{1}, size_t{13}, size_t{260}, kErrorBlock}) {
      std::vector<uint8_t> codes(whole.size());
      std::vector<float> y(x.size()), fake(x);
      kernels::ErrorSums error;
      for (size_t at = 0; at < x.size(); at += piece) {
        const size_t count = std::min(piece, x.size() - at);
        const std::span<const float> part(x.data() + at, count);
        quantize(*g, setting.spec, qparams, Path::fake, part, at, codes.data() + at * bytes);
        dequantize(*g, setting.spec, qparams, codes.data() + at * bytes, count, at, y.data() + at);
        fake_quantize(*g, setting.spec, qparams, {fake.data() + at, count}, at, fake.data() + at);
        append_quantization_error(*g, setting.spec, qparams, part, codes.data() + at * bytes, at, error);
      }
      CHECK(codes == whole);
      CHECK(y == whole_y);
      CHECK(fake == whole_fake);
      CHECK(error.count == whole_error.count);
      CHECK(error.max_abs == whole_error.max_abs);
      CHECK(error.noise == doctest::Approx(whole_error.noise));
      if (piece == kErrorBlock) {
        CHECK(error.signal == whole_error.signal);
        CHECK(error.quantized == whole_error.quantized);
        CHECK(error.noise == whole_error.noise);
      }
    }
  }
}

TEST_CASE("a scale for each element gives what each element gives by itself") {
  RandomValues random(7);
  const size_t n = 333;  // more than a patch
  Granularity each, one;
  each.axis = n;
  std::vector<QParams> qparams;
  for (size_t i = 0; i < n; ++i) qparams.push_back({(i % 2 ? 1.0f : -1.0f) * (0.02f + 0.001f * float(i % 50)), 0.0f});
  std::vector<float> x = random.vector(n);
  x[5] = std::numeric_limits<float>::infinity();
  x[6] = std::nanf("");
  for (const Dtype dtype :
       {Dtype::int3, Dtype::int8, Dtype::uint4, Dtype::int16, Dtype::int32, Dtype::fp4, Dtype::fp8_e4m3})
    for (const RoundMethod method : {RoundMethod::half_even, RoundMethod::floor})
      for (const Path path : {Path::fake, Path::real}) {
        QuantizationSpec spec;
        spec.dtype = dtype;
        spec.round_method = info_of(dtype).is_integer ? method : RoundMethod::half_even;
        spec.symmetric = dtype != Dtype::uint4;
        if (!spec.symmetric)
          for (size_t i = 0; i < n; ++i) qparams[i].zero_point = static_cast<float>(i % 16);
        const size_t bytes = code_bytes_of(spec);
        std::vector<uint8_t> codes(n * bytes), by_itself(n * bytes);
        std::vector<float> y(n), y_by_itself(n), fake(n), fake_by_itself(n);
        quantize(each, spec, qparams, path, x, 0, codes.data());
        dequantize(each, spec, qparams, codes.data(), n, 0, y.data());
        fake_quantize(each, spec, qparams, x, 0, fake.data());
        for (size_t i = 0; i < n; ++i) {
          quantize(one, spec, {&qparams[i], 1}, path, {&x[i], 1}, 0, by_itself.data() + i * bytes);
          dequantize(one, spec, {&qparams[i], 1}, by_itself.data() + i * bytes, 1, 0, &y_by_itself[i]);
          fake_quantize(one, spec, {&qparams[i], 1}, {&x[i], 1}, 0, &fake_by_itself[i]);
        }
        CHECK(codes == by_itself);
        CHECK(std::memcmp(y.data(), y_by_itself.data(), n * sizeof(float)) == 0);
        CHECK(std::memcmp(fake.data(), fake_by_itself.data(), n * sizeof(float)) == 0);
        for (QParams& q : qparams) q.zero_point = 0;
      }
}

TEST_CASE("append_quantization_error: sums over x and the values of its codes") {
  QuantizationSpec spec;
  const auto g = granularity_of({3}, spec);
  const std::vector<float> x = {1.0f, -2.25f, 100.0f};
  const std::vector<QParams> qparams = {{0.5f, 0.0f}};
  const std::vector<uint8_t> codes = {2, 0xFC, 127};  // 1, -2, 63.5
  const kernels::ErrorSums sums = quantization_error_of(*g, spec, qparams, x, codes.data(), 0);
  CHECK(sums.count == 3);
  CHECK(sums.signal == 1 + 2.25 * 2.25 + 10000);
  CHECK(sums.quantized == 1 + 4 + 63.5 * 63.5);
  CHECK(sums.noise == 0.0625 + 36.5 * 36.5);
  CHECK(sums.max_abs == 36.5f);
}
