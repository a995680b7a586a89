#include "kernels/kernels.h"
#include "kernels/variants.h"

namespace wasmquant::kernels {
namespace {

std::vector<uint16_t> every_code() {
  std::vector<uint16_t> all(65536);
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint16_t>(i);
  return all;
}

/// Codes between which the 16-bit neighbours of a value lie, in float64: value, midpoints and their float neighbours.
std::vector<float> around_every_finite_code(void (*widen)(std::span<const uint16_t>, float*) noexcept,
                                            uint16_t first_special) {
  std::vector<float> values;
  for (uint32_t code = 0; code + 1 < first_special; ++code) {
    const std::array<uint16_t, 2> pair = {static_cast<uint16_t>(code), static_cast<uint16_t>(code + 1)};
    std::array<float, 2> v;
    widen(pair, v.data());
    const float middle = static_cast<float>((static_cast<double>(v[0]) + static_cast<double>(v[1])) / 2);
    for (float near : {v[0], middle}) {
      values.push_back(near);
      values.push_back(std::nextafter(near, -1e30f));
      values.push_back(std::nextafter(near, 1e30f));
    }
  }
  const size_t positive = values.size();
  for (size_t i = 0; i < positive; ++i) values.push_back(-values[i]);
  for (float v : special_values()) values.push_back(v);
  return values;
}

TEST_CASE("every 16-bit code widens as the oracle does, and round-trips") {
  const std::vector<uint16_t> codes = every_code();
  for_each_arch([&] {
    std::vector<float> x(codes.size()), expected(codes.size());
    std::vector<uint16_t> back(codes.size());
    widen_bf16(codes, x.data());
    reference::widen_bf16(codes, expected.data());
    REQUIRE(std::memcmp(x.data(), expected.data(), x.size() * sizeof(float)) == 0);
    narrow_bf16(x, back.data());
    for (size_t i = 0; i < codes.size(); ++i)
      REQUIRE(back[i] == ((codes[i] & 0x7FFF) > 0x7F80 ? codes[i] | 0x40 : codes[i]));
    widen_f16(codes, x.data());
    reference::widen_f16(codes, expected.data());
    REQUIRE(std::memcmp(x.data(), expected.data(), x.size() * sizeof(float)) == 0);
    narrow_f16(x, back.data());
    for (size_t i = 0; i < codes.size(); ++i)
      REQUIRE(back[i] == ((codes[i] & 0x7FFF) > 0x7C00 ? codes[i] | 0x200 : codes[i]));
  });
}

TEST_CASE("every value, midpoint and neighbour narrows as the oracle does") {
  const std::vector<float> for_bf16 = around_every_finite_code(reference::widen_bf16, 0x7F80);
  const std::vector<float> for_f16 = around_every_finite_code(reference::widen_f16, 0x7C00);
  std::vector<uint16_t> expected_bf16(for_bf16.size()), expected_f16(for_f16.size());
  reference::narrow_bf16(for_bf16, expected_bf16.data());
  reference::narrow_f16(for_f16, expected_f16.data());
  for_each_arch([&] {
    std::vector<uint16_t> bits(for_bf16.size());
    narrow_bf16(for_bf16, bits.data());
    REQUIRE(bits == expected_bf16);
    bits.resize(for_f16.size());
    narrow_f16(for_f16, bits.data());
    REQUIRE(bits == expected_f16);
  });
}

TEST_CASE("casts equal their oracles at every length and start") {
  const std::vector<uint16_t> codes = every_code();
  for_each_arch_and_length([&](size_t n, size_t offset) {
    const std::span<const uint16_t> bits = std::span(codes).subspan(31000 + offset, n);
    check_same<float>(
        n, offset, [&](float* x) { widen_bf16(bits, x); }, [&](float* x) { reference::widen_bf16(bits, x); });
    check_same<float>(
        n, offset, [&](float* x) { widen_f16(bits, x); }, [&](float* x) { reference::widen_f16(bits, x); });
    const std::vector<float> x = test_values(n + offset, Content::with_specials, static_cast<uint32_t>(n));
    const std::span<const float> run = std::span(x).subspan(offset);
    check_same<uint16_t>(
        n, offset, [&](uint16_t* out) { narrow_bf16(run, out); },
        [&](uint16_t* out) { reference::narrow_bf16(run, out); });
    check_same<uint16_t>(
        n, offset, [&](uint16_t* out) { narrow_f16(run, out); },
        [&](uint16_t* out) { reference::narrow_f16(run, out); });
  });
}

TEST_CASE("float16 at its edges") {
  const std::array<float, 8> x = {65504.0f, 65519.996f, 65520.0f, 1e30f, 0x1p-24f, 0x1p-25f, 0x1.8p-25f, -0x1p-14f};
  const std::array<uint16_t, 8> expected = {0x7BFF, 0x7BFF, 0x7C00, 0x7C00, 0x0001, 0x0000, 0x0001, 0x8400};
  for_each_arch([&] {
    std::array<uint16_t, 8> bits;
    narrow_f16(x, bits.data());
    CHECK(bits == expected);
  });
}

}  // namespace
}  // namespace wasmquant::kernels
