// Kernels of integers on every instruction set, against the oracles.
#include "kernels/kernels.h"
#include "kernels/variants.h"

namespace wasmquant::kernels {
namespace {

constexpr std::array kRounds = {RoundMethod::half_even, RoundMethod::round, RoundMethod::floor, RoundMethod::half_away};
constexpr size_t kQuantizeIntOneRun = size_t{1} << 20;
constexpr std::array kPaths = {Path::fake, Path::real};

Affine affine(float scale, float zero_point, float quant_min, float quant_max) {
  return {scale, 1.0f / scale, zero_point, quant_min, quant_max};
}

const std::vector<Affine>& grids8() {
  static const std::vector<Affine> all = {
      affine(1.0f, 0, -128, 127),    affine(0.37f, 3, -128, 127), affine(1.0f, 117, 0, 255),
      affine(1.0f, -128, -128, 127), affine(2.0f, 7, 0, 15),      affine(1.0f, 0, -8, 7),
      affine(0.5f, 2.25f, 0, 15),    affine(1e-30f, 0, -2, 1),    affine(0x1p-126f, 1, -4, 3),
      affine(3e38f, 0, -128, 127),   affine(-0.37f, 0, -8, 7),    affine(-0x1p-126f, 0, -2, 1),
  };
  return all;
}

template <class Test>
void for_each_case(const std::vector<Affine>& grids, Test&& test) {
  for (const Affine& a : grids) {
    for (RoundMethod round : kRounds) {
      for (Path path : kPaths) {
        INFO("scale " << a.scale << ", zero point " << a.zero_point << ", rounding " << static_cast<int>(round)
                      << ", path " << static_cast<int>(path));
        test(a, round, path);
      }
    }
  }
}

TEST_CASE("quantize_codes8 equals its oracle") {
  for_each_arch_and_length([](size_t n, size_t offset) {
    const std::vector<float> x = test_values(n + offset, Content::with_specials, static_cast<uint32_t>(n));
    const std::span<const float> run = std::span(x).subspan(offset);
    for_each_case(grids8(), [&](const Affine& a, RoundMethod round, Path path) {
      check_same<uint8_t>(
          n, offset, [&](uint8_t* codes) { quantize_codes8(run, &a, kQuantizeIntOneRun, round, path, codes); },
          [&](uint8_t* codes) { reference::quantize_codes8(run, &a, kQuantizeIntOneRun, round, path, codes); });
    });
  });
}

TEST_CASE("quantize_codes16 equals its oracle") {
  const std::vector<Affine> grids = {affine(1.0f, 0, -32768, 32767), affine(0.01f, 1001, -32768, 32767),
                                     affine(1.0f, 4097, 0, 65535), affine(0.7f, 0.5f, -512, 511)};
  for_each_arch_and_length([&](size_t n, size_t offset) {
    const std::vector<float> x = test_values(n + offset, Content::with_specials, static_cast<uint32_t>(n));
    const std::span<const float> run = std::span(x).subspan(offset);
    for_each_case(grids, [&](const Affine& a, RoundMethod round, Path path) {
      check_same<uint16_t>(
          n, offset, [&](uint16_t* codes) { quantize_codes16(run, &a, kQuantizeIntOneRun, round, path, codes); },
          [&](uint16_t* codes) { reference::quantize_codes16(run, &a, kQuantizeIntOneRun, round, path, codes); });
    });
  });
}

TEST_CASE("quantize_codes8_each equals its oracle") {
  for_each_arch_and_length([](size_t n, size_t offset) {
    const std::vector<float> x = test_values(n + offset, Content::with_specials, static_cast<uint32_t>(n));
    std::vector<float> inverse(n + offset), zero_point(n + offset);
    for (size_t i = 0; i < n + offset; ++i) {
      inverse[i] = 1.0f / (0.1f + static_cast<float>(i % 17));
      zero_point[i] = i % 5 == 4 ? 0.75f : static_cast<float>(i % 9) - 4.0f;
    }
    for (RoundMethod round : kRounds) {
      for (Path path : kPaths) {
        const std::span<const float> run = std::span(x).subspan(offset);
        const float *inv = inverse.data() + offset, *zero = zero_point.data() + offset;
        check_same<uint8_t>(
            n, offset, [&](uint8_t* codes) { quantize_codes8_each(run, inv, zero, -128, 127, round, path, codes); },
            [&](uint8_t* codes) { reference::quantize_codes8_each(run, inv, zero, -128, 127, round, path, codes); });
      }
    }
  });
}

TEST_CASE("dequantize_codes8 equals its oracle") {
  for_each_arch_and_length([](size_t n, size_t offset) {
    std::vector<uint8_t> codes(n + offset);
    for (size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<uint8_t>(i * 37);
    const std::span<const uint8_t> run = std::span<const uint8_t>(codes).subspan(offset);
    for (const Affine& a : grids8()) {
      for (bool is_signed : {false, true})
        check_same<float>(
            n, offset, [&](float* y) { dequantize_codes8(run, is_signed, &a, kQuantizeIntOneRun, y); },
            [&](float* y) { reference::dequantize_codes8(run, is_signed, &a, kQuantizeIntOneRun, y); });
    }
  });
}

TEST_CASE("fake_quantize_int equals its oracle, also in place") {
  for_each_arch_and_length([](size_t n, size_t offset) {
    const std::vector<float> x = test_values(n + offset, Content::with_specials, static_cast<uint32_t>(n));
    const std::span<const float> run = std::span(x).subspan(offset);
    for_each_case(grids8(), [&](const Affine& a, RoundMethod round, Path) {
      check_same<float>(
          n, offset, [&](float* y) { fake_quantize_int(run, &a, kQuantizeIntOneRun, round, y); },
          [&](float* y) { reference::fake_quantize_int(run, &a, kQuantizeIntOneRun, round, y); });
      check_same<float>(
          n, offset,
          [&](float* y) {
            std::copy(run.begin(), run.end(), y);
            fake_quantize_int({y, n}, &a, kQuantizeIntOneRun, round, y);
          },
          [&](float* y) { reference::fake_quantize_int(run, &a, kQuantizeIntOneRun, round, y); });
    });
  });
}

TEST_CASE("runs: each uses its own grid, the last may be shorter") {
  const std::vector<Affine>& grids = grids8();
  for_each_arch([&] {
    for (const size_t run : {1, 3, 16, 31, 32, 33, 64, 100}) {
      const size_t n = run * (grids.size() - 1) + (run + 1) / 2;
      const std::vector<float> x = test_values(n, Content::with_specials, static_cast<uint32_t>(run));
      INFO("run " << run);
      for (const RoundMethod round : kRounds) {
        for (const Path path : kPaths)
          check_same<uint8_t>(
              n, 1, [&](uint8_t* codes) { quantize_codes8(x, grids.data(), run, round, path, codes); },
              [&](uint8_t* codes) { reference::quantize_codes8(x, grids.data(), run, round, path, codes); });
        check_same<float>(
            n, 1, [&](float* y) { fake_quantize_int(x, grids.data(), run, round, y); },
            [&](float* y) { reference::fake_quantize_int(x, grids.data(), run, round, y); });
      }
      std::vector<uint8_t> codes(n);
      for (size_t i = 0; i < n; ++i) codes[i] = static_cast<uint8_t>(i * 37);
      check_same<float>(
          n, 1, [&](float* y) { dequantize_codes8(codes, true, grids.data(), run, y); },
          [&](float* y) { reference::dequantize_codes8(codes, true, grids.data(), run, y); });
    }
  });
}

TEST_CASE("fake_quantize_int: grids wider than 16 bits") {
  const Affine a = affine(1.0f, 0, -2147483648.0f, 2147483648.0f);
  const std::vector<float> x = {5000001.0f, -3e9f, 3e9f, 0.5f, 1.5f, 16777217.0f};
  std::vector<float> y(x.size());
  for_each_arch([&] {
    fake_quantize_int(x, &a, kQuantizeIntOneRun, RoundMethod::half_even, y.data());
    CHECK(y == std::vector<float>{5000001.0f, -2147483648.0f, 2147483648.0f, 0.0f, 2.0f, 16777216.0f});
  });
}

// The oracle itself, against values worked out by hand.

uint8_t code_of(float x, const Affine& a, RoundMethod round, Path path) {
  uint8_t code;
  reference::quantize_codes8({&x, 1}, &a, kQuantizeIntOneRun, round, path, &code);
  return code;
}

TEST_CASE("ties follow each rounding mode") {
  const Affine a = affine(1.0f, 0, -128, 127);
  const auto code = [&](float x, RoundMethod round) { return static_cast<int8_t>(code_of(x, a, round, Path::fake)); };
  struct Row {
    float v;
    int half_even, round, floor, half_away;
  };
  for (const Row& row :
       {Row{2.5f, 2, 3, 2, 3}, Row{3.5f, 4, 4, 3, 4}, Row{-2.5f, -2, -2, -3, -3}, Row{-1.5f, -2, -1, -2, -2},
        Row{-0.5f, 0, 0, -1, -1}, Row{0.5f, 0, 1, 0, 1}, Row{1.2f, 1, 1, 1, 1}, Row{-1.7f, -2, -2, -2, -2},
        Row{0.49999997f, 0, 0, 0, 0}, Row{-0.49999997f, 0, 0, -1, 0}}) {
    CAPTURE(row.v);
    CHECK(code(row.v, RoundMethod::half_even) == row.half_even);
    CHECK(code(row.v, RoundMethod::round) == row.round);
    CHECK(code(row.v, RoundMethod::floor) == row.floor);
    CHECK(code(row.v, RoundMethod::half_away) == row.half_away);
  }
}

TEST_CASE("the zero point is added after rounding on the fake path, before it on the real path") {
  const Affine a = affine(1.0f, 1, 0, 255);
  CHECK(code_of(0.5f, a, RoundMethod::half_even, Path::fake) == 1);
  CHECK(code_of(0.5f, a, RoundMethod::half_even, Path::real) == 2);
}

TEST_CASE("NaN becomes the zero point, infinity and overflow the ends of the range") {
  const Affine a = affine(1e-30f, 5, 0, 15);
  for (Path path : kPaths) {
    CHECK(code_of(float_of(0x7FC00001), a, RoundMethod::half_even, path) == 5);
    CHECK(code_of(float_of(0xFF800001), a, RoundMethod::half_even, path) == 5);
    CHECK(code_of(std::numeric_limits<float>::infinity(), a, RoundMethod::half_even, path) == 15);
    CHECK(code_of(-std::numeric_limits<float>::infinity(), a, RoundMethod::half_even, path) == 0);
    CHECK(code_of(3e38f, a, RoundMethod::half_even, path) == 15);
    CHECK(code_of(-3e38f, a, RoundMethod::half_even, path) == 0);
  }
}

TEST_CASE("codes multiply by the reciprocal, which differs from dividing near ties") {
  int differing = 0;
  for (int step = 1; step <= 100; ++step) {
    const float scale = static_cast<float>(step) * 0.0001f;
    const Affine a = affine(scale, 0, -128, 127);
    for (int k = -253; k <= 253; k += 2) {
      const float x = static_cast<float>(k) * 0.5f * scale;
      const int expected = static_cast<int>(std::nearbyint(x * (1.0f / scale)));
      CHECK(static_cast<int8_t>(code_of(x, a, RoundMethod::half_even, Path::fake)) == expected);
      differing += expected != static_cast<int>(std::nearbyint(x / scale));
    }
  }
  CHECK(differing > 0);
}

TEST_CASE("fake quantization never gives minus zero") {
  const Affine a = affine(1.0f, 0, -128, 127);
  for_each_arch([&] {
    const std::vector<float> x(67, -0.25f);
    std::vector<float> y(67);
    fake_quantize_int(x, &a, kQuantizeIntOneRun, RoundMethod::half_even, y.data());
    for (float v : y) CHECK(std::bit_cast<uint32_t>(v) == 0);
  });
}

}  // namespace
}  // namespace wasmquant::kernels
