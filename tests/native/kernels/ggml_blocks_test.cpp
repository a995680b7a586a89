// Kernels of GGUF's blocks on every instruction set, against the oracles.
#include "kernels/ggml/ggml_blocks.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string>

#include "kernels/ggml/ggml_layout.h"
#include "kernels/ggml_rows.h"
#include "kernels/ggml_stages.h"
#include "kernels/variants.h"
#include "numeric/half.h"

namespace wasmquant::kernels {
namespace {

constexpr uint64_t kBlockRows = 3, kBlockColumns = 768;

std::vector<uint8_t> quantized(GgmlType type, const std::vector<float>& x, uint64_t rows, const float* importance) {
  std::vector<uint8_t> bytes(info_of(type).bytes_of(x.size()) + 16, 0xA5);
  quantize_blocks(type, x.data(), rows, x.size() / rows, importance, bytes.data());
  for (size_t i = bytes.size() - 16; i < bytes.size(); ++i) REQUIRE(bytes[i] == 0xA5);
  bytes.resize(bytes.size() - 16);
  return bytes;
}

std::vector<float> dequantized(GgmlType type, const std::vector<uint8_t>& bytes) {
  const GgmlTypeInfo& info = info_of(type);
  std::vector<float> y(bytes.size() / info.block_bytes * info.block);
  dequantize_blocks(type, bytes.data(), y.size(), y.data());
  return y;
}

uint32_t fnv1a(const std::vector<uint8_t>& bytes) {
  uint32_t hash = 2166136261u;
  for (const uint8_t byte : bytes) hash = (hash ^ byte) * 16777619u;
  return hash;
}

TEST_CASE("blocks are the same on every instruction set and equal the oracles") {
  const std::vector<float> importance = importance_of(kBlockColumns);
  for (const GgmlType type : block_types()) {
    for (const Rows kind : kAllRows) {
      for (const float* weights : {static_cast<const float*>(nullptr), importance.data()}) {
        INFO(std::string(info_of(type).name) << ", rows " << static_cast<int>(kind) << (weights ? ", importance" : ""));
        const std::vector<float> x = rows_of(kind, kBlockRows * kBlockColumns, static_cast<uint32_t>(kind) + 5);
        std::vector<uint8_t> expected(info_of(type).bytes_of(x.size()));
        reference::quantize_blocks(type, x.data(), kBlockRows, kBlockColumns, weights, expected.data());
        for_each_arch([&] { REQUIRE(quantized(type, x, kBlockRows, weights) == expected); });
      }
    }
  }
}

bool is_same(const ErrorSums& a, const ErrorSums& b) {
  return a.signal == b.signal && a.quantized == b.quantized && a.noise == b.noise && a.max_abs == b.max_abs &&
         a.count == b.count;
}

TEST_CASE("the error measured during quantization equals that of the stored values, bit for bit") {
  const std::vector<float> importance = importance_of(kBlockColumns);
  for (const GgmlType type : block_types()) {
    for (const Rows kind : kAllRows) {
      for (const float* weights : {static_cast<const float*>(nullptr), importance.data()}) {
        INFO(std::string(info_of(type).name) << ", rows " << static_cast<int>(kind) << (weights ? ", importance" : ""));
        const std::vector<float> x = rows_of(kind, kBlockRows * kBlockColumns, static_cast<uint32_t>(kind) + 5);
        const std::vector<float> y = dequantized(type, quantized(type, x, kBlockRows, weights));
        const ErrorSums expected = reference::error_between(x, y.data());
        std::vector<uint8_t> bytes(info_of(type).bytes_of(x.size()));
        for_each_arch([&] {
          ErrorSums error;
          quantize_blocks(type, x.data(), kBlockRows, kBlockColumns, weights, bytes.data(), &error);
          REQUIRE(is_same(error, expected));
          REQUIRE(is_same(error_of_blocks(type, x.data(), x.size(), bytes.data()), expected));
        });
        ErrorSums error;
        reference::quantize_blocks(type, x.data(), kBlockRows, kBlockColumns, weights, bytes.data(), &error);
        REQUIRE(is_same(error, expected));
      }
    }
  }
}

struct RunCase {
  RunCoding coding;
  RunPacking packing;
  float add;
  int32_t least, greatest;  // halves
};
constexpr RunCase kRunCases[] = {
    {{0, 0, 0, true, false}, RunPacking::bytes, 0, -253, 253},
    {{8.5f, 15, 8, false, false}, RunPacking::nibbles, 0, -17, 17},
    {{0.5f, 15, 0, false, true}, RunPacking::nibbles, 1, -3, 31},
    {{16.5f, 31, 16, false, false}, RunPacking::fifths, 0, -33, 33},
    {{0.5f, 31, 0, false, true}, RunPacking::fifths, 1, -3, 63},
};

TEST_CASE("codes of runs: halves, neighbours of halves, the sign of the extreme, and no other byte is written") {
  for (const RunCase& test : kRunCases) {
    std::vector<float> x;
    for (int32_t half = test.least; half <= test.greatest; ++half)
      for (const int32_t step : {-1, 0, 1}) {
        const float v = static_cast<float>(half) / 2;
        const bool is_end = half == test.least || half == test.greatest;
        x.push_back(step == 0 || is_end ? v : std::nextafter(v, static_cast<float>(step) * 1e9f));
      }
    while (x.size() % kExtentRun != 0 || x.size() < 3 * kExtentRun) x.push_back(-0.0f);
    const size_t all = x.size() / kExtentRun, size = test.packing == RunPacking::bytes     ? 32
                                                     : test.packing == RunPacking::nibbles ? 16
                                                                                           : 20;
    const size_t stride = size + 3;
    const std::vector<float> ones(all, 1.0f), add(all, test.add), minimum(all, -1.25f);
    const RunParameters parameters = {add.data(), ones.data(), ones.data(), minimum.data()};
    for (size_t begin = 0; begin < all; begin += 32)
      for (size_t runs = 1; runs <= std::min<size_t>(all - begin, 32); ++runs) {
        const float* from = x.data() + begin * kExtentRun;
        std::vector<uint8_t> expected(runs * stride, 0xA5), bytes = expected;
        const ErrorSums oracle =
            reference::measured_codes(from, runs, test.coding, parameters, {expected.data(), stride, test.packing});
        for (size_t i = 0; i < runs * kExtentRun; ++i) {
          const uint8_t* run = expected.data() + i / kExtentRun * stride;
          uint8_t codes[kExtentRun] = {};
          if (test.packing == RunPacking::bytes) std::copy_n(run, kExtentRun, codes);
          if (test.packing == RunPacking::fifths) unpack_fifth_bits(run, codes);
          if (test.packing != RunPacking::bytes) unpack_planes<kHalves>(run + size - 16, codes);
          const float whole = test.coding.is_rounded
                                  ? std::round(from[i])
                                  : std::min(test.coding.high, std::floor(from[i] + test.add + test.coding.bias));
          REQUIRE(codes[i % kExtentRun] == static_cast<uint8_t>(static_cast<int32_t>(whole)));
        }
        for_each_arch([&] {
          std::fill(bytes.begin(), bytes.end(), uint8_t{0xA5});
          REQUIRE(is_same(measured_codes(from, runs, test.coding, parameters, {bytes.data(), stride, test.packing}),
                          oracle));
          REQUIRE(bytes == expected);
        });
      }
  }
}

TEST_CASE("scales of runs: zeros of either sign, reciprocals that overflow, extents that do") {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::vector<float> ends = {0.0f,    -0.0f, 1.0f,   -1.0f,  2.5f,      -2.5f,     1e-39f,
                                   -1e-39f, 3e38f, -3e38f, 1e-45f, kInfinity, -kInfinity};
  std::vector<float> low, high;
  for (const float a : ends)
    for (const float b : ends) {
      low.push_back(std::min(a, b));
      high.push_back(std::max(a, b));
    }
  for (size_t begin = 0; begin < low.size(); begin += 32) {
    const size_t runs = std::min<size_t>(low.size() - begin, 32);
    std::vector<float> least(32), most(32);
    std::copy_n(low.begin() + static_cast<ptrdiff_t>(begin), runs, least.begin());
    std::copy_n(high.begin() + static_cast<ptrdiff_t>(begin), runs, most.begin());
    for (const float levels : {-8.0f, -16.0f, 15.0f, 127.0f})
      for (const bool has_minimum : {false, true}) {
        if (has_minimum && levels < 0) continue;
        std::vector<float> expected(96), found(96);
        const auto scales_by = [&](auto function, std::vector<float>& to) {
          return function(least.data(), most.data(), runs, levels, has_minimum, to.data(), to.data() + 32,
                          to.data() + 64);
        };
        const bool any_unusable = scales_by(reference::run_scales, expected);
        for_each_arch([&] {
          REQUIRE(scales_by(run_scales, found) == any_unusable);
          for (size_t part = 0; part < 3; ++part)
            for (size_t i = 0; i < runs; ++i) {
              const float wanted = expected[part * 32 + i], got = found[part * 32 + i];
              REQUIRE((std::isnan(wanted) ? std::isnan(got)
                                          : std::bit_cast<uint32_t>(wanted) == std::bit_cast<uint32_t>(got)));
            }
        });
      }
  }
}

struct Pinned {
  GgmlType type;
  uint32_t plain, weighted;
};
// FNV-1a of what ggml_quantize_chunk of ggml 0.27 (Debian, x86-64) makes of the rows below.
constexpr Pinned kPinned[] = {
    {GgmlType::q4_0, 0xEA30F8D2, 0x42FEA445},
    {GgmlType::q4_1, 0x992B794C, 0x14E66BE3},
    {GgmlType::q5_0, 0xF07CB32B, 0x343CCF97},
    {GgmlType::q5_1, 0xDCA484DF, 0x0202711C},
    {GgmlType::q8_0, 0xB33701F8, 0xB33701F8},
    {GgmlType::q2_k, 0x70F30E50, 0x1D445292},
    {GgmlType::q3_k, 0xF14BBAA1, 0xCC9656FC},
    {GgmlType::q4_k, 0x40992B74, 0x5D3B7215},
    {GgmlType::q5_k, 0x6A4CC6F1, 0xE27F6699},
    {GgmlType::q6_k, 0xE12B2B13, 0xAB56913F},
    {GgmlType::iq4_nl, 0x7BC3A3BA, 0xADFD5B9C},
    {GgmlType::iq4_xs, 0x3BADF99A, 0xDF427693},
    {GgmlType::tq1_0, 0xB1746D65, 0xB1746D65},
    {GgmlType::tq2_0, 0xB142EE1E, 0xB142EE1E},
    {GgmlType::mxfp4, 0x602DD5DC, 0x602DD5DC},
    {GgmlType::nvfp4, 0x79BB2BC5, 0x79BB2BC5},
    {GgmlType::q1_0, 0x2D78005D, 0x2D78005D},
    {GgmlType::q2_0, 0xA2F50351, 0xA2F50351},
    {GgmlType::iq3_xxs, 0x3CA16616, 0xA7271960},
    {GgmlType::iq2_s, 0xA93A0787, 0xE4E0DE8F},
    {GgmlType::iq1_m, 0xB9E8C6E9, 0x0E99807B},
    // Without importance ggml refuses these: with a matrix of ones.
    {GgmlType::iq2_xs, 0xBDD85E47, 0x2FAC0B7F},
    {GgmlType::iq2_xxs, 0x65C24B3A, 0xF522D600},
    {GgmlType::iq1_s, 0x0AB2739B, 0x2C209DA3},
    // Without the rows of zeros, after which ggml stores codes in the wrong place.
    {GgmlType::iq3_s, 0xEAC8797D, 0xA1F4A67D},
};

TEST_CASE("blocks are those of ggml, with and without importance") {
  const auto rows_for = [](GgmlType type) {
    std::vector<float> x;
    for (const Rows kind : {Rows::bell, Rows::heavy, Rows::one_outlier, Rows::negative, Rows::zeros, Rows::constant,
                            Rows::ties, Rows::mixed_zeros, Rows::tiny}) {
      if (type == GgmlType::iq3_s && kind == Rows::zeros) continue;
      const std::vector<float> rows = rows_of(kind, kBlockRows * kBlockColumns);
      x.insert(x.end(), rows.begin(), rows.end());
    }
    return x;
  };
  const std::vector<float> importance = importance_of(kBlockColumns);
  CHECK(std::size(kPinned) == block_types().size());
  for (const Pinned& pinned : kPinned) {
    INFO(std::string(info_of(pinned.type).name));
    const std::vector<float> x = rows_for(pinned.type);
    CHECK(fnv1a(quantized(pinned.type, x, x.size() / kBlockColumns, nullptr)) == pinned.plain);
    CHECK(fnv1a(quantized(pinned.type, x, x.size() / kBlockColumns, importance.data())) == pinned.weighted);
  }
}

TEST_CASE("any number of blocks in a row") {
  for (const GgmlType type : block_types()) {
    const size_t block = info_of(type).block;
    for (size_t blocks = 1; blocks <= 5000 / block; blocks += block < 256 ? 3 : 1) {
      INFO(std::string(info_of(type).name) << ", " << blocks << " blocks");
      const std::vector<float> x = rows_of(Rows::bell, 2 * blocks * block, static_cast<uint32_t>(blocks));
      const std::vector<float> importance = importance_of(blocks * block);
      for (const float* weights : {static_cast<const float*>(nullptr), importance.data()}) {
        std::vector<uint8_t> expected(info_of(type).bytes_of(x.size()));
        reference::quantize_blocks(type, x.data(), 2, blocks * block, weights, expected.data());
        REQUIRE(quantized(type, x, 2, weights) == expected);
      }
    }
  }
}

TEST_CASE("the error stays below the type's ceiling") {
  // Root mean square error of bell-shaped rows, relative to their root mean square.
  constexpr std::pair<GgmlType, double> kCeilings[] = {
      {GgmlType::q8_0, 0.006},   {GgmlType::q6_k, 0.02},   {GgmlType::q5_0, 0.05},  {GgmlType::q5_1, 0.045},
      {GgmlType::q5_k, 0.04},    {GgmlType::q4_0, 0.1},    {GgmlType::q4_1, 0.09},  {GgmlType::q4_k, 0.08},
      {GgmlType::iq4_nl, 0.08},  {GgmlType::iq4_xs, 0.08}, {GgmlType::mxfp4, 0.14}, {GgmlType::q3_k, 0.18},
      {GgmlType::q2_k, 0.33},    {GgmlType::tq1_0, 0.9},   {GgmlType::tq2_0, 0.9},  {GgmlType::iq3_s, 0.2},
      {GgmlType::iq3_xxs, 0.25}, {GgmlType::iq2_s, 0.35},  {GgmlType::iq2_xs, 0.4}, {GgmlType::iq2_xxs, 0.45},
      {GgmlType::iq1_m, 0.6},    {GgmlType::iq1_s, 0.65},  {GgmlType::nvfp4, 0.12}, {GgmlType::q1_0, 0.65},
      {GgmlType::q2_0, 0.8}};
  CHECK(std::size(kCeilings) == block_types().size());
  const std::vector<float> x = rows_of(Rows::bell, 16 * kBlockColumns);
  for (const std::pair<GgmlType, double>& limit : kCeilings) {
    const GgmlType type = limit.first;
    const double ceiling = limit.second;
    const std::vector<float> y = dequantized(type, quantized(type, x, 16, nullptr));
    double signal = 0, noise = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      signal += double{x[i]} * x[i];
      noise += (double{x[i]} - y[i]) * (double{x[i]} - y[i]);
    }
    INFO(std::string(info_of(type).name) << " " << std::sqrt(noise / signal));
    CHECK(std::sqrt(noise / signal) < ceiling);
    CHECK(std::sqrt(noise / signal) > ceiling / 3);
  }
}

TEST_CASE("importance lowers the error where it is high") {
  const std::vector<float> x = rows_of(Rows::bell, 32 * kBlockColumns);
  std::vector<float> importance(kBlockColumns, 1e-4f);
  for (size_t i = 0; i < kBlockColumns; i += 16) importance[i] = 1;
  for (const GgmlType type : {GgmlType::q4_0, GgmlType::q4_1, GgmlType::q5_0, GgmlType::q5_1, GgmlType::iq4_nl,
                              GgmlType::q2_k, GgmlType::q3_k, GgmlType::q4_k, GgmlType::q5_k, GgmlType::q6_k}) {
    const auto error = [&](const float* weights) {
      const std::vector<float> y = dequantized(type, quantized(type, x, 32, weights));
      double sum = 0;
      for (size_t i = 0; i < x.size(); i += 16) sum += (double{x[i]} - y[i]) * (double{x[i]} - y[i]);
      return sum;
    };
    INFO(std::string(info_of(type).name));
    CHECK(error(importance.data()) < error(nullptr));
  }
}

TEST_CASE("NaN and infinity count as zero, also as importance") {
  const std::vector<float> x = rows_of(Rows::non_finite, kBlockRows * kBlockColumns);
  std::vector<float> clean = x, importance = importance_of(kBlockColumns), clean_importance = importance;
  for (float& v : clean) v = std::isfinite(v) ? v : 0;
  importance[3] = std::numeric_limits<float>::quiet_NaN();
  importance[40] = std::numeric_limits<float>::infinity();
  clean_importance[3] = clean_importance[40] = 0;
  for (const GgmlType type : block_types()) {
    INFO(std::string(info_of(type).name));
    CHECK(quantized(type, x, kBlockRows, nullptr) == quantized(type, clean, kBlockRows, nullptr));
    CHECK(quantized(type, x, kBlockRows, importance.data()) ==
          quantized(type, clean, kBlockRows, clean_importance.data()));
  }
}

TEST_CASE("every code of the nibble layouts is in its place") {
  // A block whose elements are exact multiples of the scale: code j of the first half, 15 - j of the second.
  const auto nibbles_of = [](GgmlType type, size_t header, auto value) {
    std::vector<float> x(32);
    for (size_t j = 0; j < 16; ++j) {
      x[j] = value(j);
      x[16 + j] = value(15 - j);
    }
    const std::vector<uint8_t> bytes = quantized(type, x, 1, nullptr);
    for (size_t j = 0; j < 16; ++j) {
      INFO(std::string(info_of(type).name) << ", byte " << j);
      CHECK(bytes[header + j] == (j | (15 - j) << 4));
    }
    CHECK(dequantized(type, bytes) == x);
  };
  nibbles_of(GgmlType::q4_0, 2, [](size_t j) { return static_cast<float>(j) - 8; });
  nibbles_of(GgmlType::q4_1, 4, [](size_t j) { return static_cast<float>(j) * 0.5f + 3; });
  nibbles_of(GgmlType::iq4_nl, 2, [](size_t j) { return static_cast<float>(kIq4Values[j]); });

  // fp4 has two zeros, of which the positive one is used.
  constexpr float kFp4[16] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6, 0, -0.5f, -1, -1.5f, -2, -3, -4, -6};
  std::vector<float> x(32);
  for (size_t j = 0; j < 32; ++j) x[j] = kFp4[j % 16];
  const std::vector<uint8_t> bytes = quantized(GgmlType::mxfp4, x, 1, nullptr);
  CHECK(bytes[0] == 127);
  for (size_t j = 0; j < 16; ++j) CHECK(bytes[1 + j] == (j == 8 ? 0 : j * 17));
  CHECK(dequantized(GgmlType::mxfp4, bytes) == x);
}

TEST_CASE("q5 and q8 blocks worked by hand") {
  std::vector<float> x(32);
  for (size_t j = 0; j < 32; ++j) x[j] = static_cast<float>(j) - 16;
  const std::vector<uint8_t> q5 = quantized(GgmlType::q5_0, x, 1, nullptr);
  CHECK(from_half(static_cast<uint16_t>(q5[0] | q5[1] << 8)) == 1.0f);
  CHECK(std::vector<uint8_t>(q5.begin() + 2, q5.begin() + 6) == std::vector<uint8_t>{0, 0, 0xFF, 0xFF});
  for (size_t j = 0; j < 16; ++j) CHECK(q5[6 + j] == j * 17);
  CHECK(dequantized(GgmlType::q5_0, q5) == x);

  for (size_t j = 0; j < 32; ++j) x[j] = j == 0 ? 127.0f : static_cast<float>(j) - 10.5f;
  const std::vector<uint8_t> q8 = quantized(GgmlType::q8_0, x, 1, nullptr);
  for (size_t j = 1; j < 32; ++j)  // halves away from zero
    CHECK(static_cast<int8_t>(q8[2 + j]) == (j <= 10 ? static_cast<int>(j) - 11 : static_cast<int>(j) - 10));
}

TEST_CASE("mxfp4's exponent is that of the logarithm rounded to float32") {
  const auto exponent_of = [](float v) {
    std::vector<float> x(32);
    x[5] = -v;
    return quantized(GgmlType::mxfp4, x, 1, nullptr)[0];
  };
  CHECK(exponent_of(0) == 0);
  CHECK(exponent_of(1) == 125);
  CHECK(exponent_of(std::nextafter(1.0f, 0.0f)) == 124);
  CHECK(exponent_of(std::nextafter(8.0f, 0.0f)) == 128);  // log2 is 3 - 0.9e-7, which is 3 in float32
  CHECK(exponent_of(std::nextafter(std::nextafter(8.0f, 0.0f), 0.0f)) == 127);
  for (int e = -126; e < 128; ++e) {  // as far as libm rounds correctly
    float v = std::ldexp(1.0f, e);
    for (int k = 0; k < 60; ++k, v = std::nextafter(v, 0.0f)) {
      if (std::isinf(v)) continue;
      const double exact = std::log2(static_cast<double>(v));
      const int expected = static_cast<int>(std::floor(static_cast<float>(exact))) + 125;
      INFO(e << " - " << k);
      CHECK(exponent_of(v) == (expected == -1 ? 0 : static_cast<uint8_t>(expected)));  // 255 means NaN
    }
  }
}

TEST_CASE("any bytes dequantize, and nothing but the output is written") {
  BellShaped dice(3);
  for (const GgmlTypeInfo& info : kGgmlTypes) {
    if (!info.can_dequantize()) continue;
    std::vector<uint8_t> bytes(info.bytes_of(uint64_t{info.block} * 64));
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(dice.next());
    Output<float> y(info.block * size_t{64}, 1);
    dequantize_blocks(info.type, bytes.data(), info.block * uint64_t{64}, y.data());
    CHECK(y.guards_are_whole());
  }
}

TEST_CASE("nvfp4's scales are halved upwards, subnormal below 2^-6, and 448 from 256") {
  const auto scale_of = [](float v) {
    std::vector<float> x(64);
    x[21] = -6 * v;
    return quantized(GgmlType::nvfp4, x, 1, nullptr)[1];
  };
  CHECK(scale_of(0) == 0);
  CHECK(scale_of(1) == 0x38);
  CHECK(scale_of(1.0625f) == 0x39);
  CHECK(scale_of(1.96875f) == 0x40);
  CHECK(scale_of(0x1p-6f) == 8);
  CHECK(scale_of(0x1.8p-9f) == 2);
  CHECK(scale_of(0x1p-11f) == 0);
  CHECK(scale_of(240) == 0x77);
  CHECK(scale_of(248) == 0x7E);
  CHECK(scale_of(1e30f) == 0x7E);
}

TEST_CASE("few levels and nvfp4, worked by hand") {
  std::vector<uint8_t> q1(18), q2(18), nv(36);
  q1[1] = q2[1] = 0x40;  // 2.0
  q1[2] = 0b101;
  CHECK(dequantized(GgmlType::q1_0, q1)[0] == 2.0f);
  CHECK(dequantized(GgmlType::q1_0, q1)[1] == -2.0f);
  CHECK(dequantized(GgmlType::q1_0, q1)[2] == 2.0f);
  q2[2] = 0b11100100;
  const std::vector<float> y2 = dequantized(GgmlType::q2_0, q2);
  CHECK(std::vector<float>(y2.begin(), y2.begin() + 4) == std::vector<float>{-2, 0, 2, 4});
  nv[1] = 0x40;      // 2.0 for elements 16..31
  nv[4 + 8] = 0x72;  // element 16: 1, element 24: 6
  const std::vector<float> y = dequantized(GgmlType::nvfp4, nv);
  CHECK(y[16] == 2.0f);
  CHECK(y[24] == 12.0f);
}

TEST_CASE("plain types") {
  const std::vector<float> x = {1, -2.5f, 65504, 0.1f};
  CHECK(dequantized(GgmlType::f32, quantized(GgmlType::f32, x, 1, nullptr)) == x);
  for (const GgmlType type : {GgmlType::f16, GgmlType::bf16}) {
    const std::vector<float> y = dequantized(type, quantized(type, x, 1, nullptr));
    for (size_t i = 0; i < x.size(); ++i) CHECK(std::fabs(y[i] - x[i]) <= std::fabs(x[i]) / 256);
  }
  CHECK(quantized(GgmlType::f16, {1.0f}, 1, nullptr) == std::vector<uint8_t>{0, 0x3C});
}

}  // namespace
}  // namespace wasmquant::kernels
