#include "kernels/error_lanes.h"
#include "kernels/kernels.h"
#include "kernels/variants.h"

namespace wasmquant::kernels {
namespace {

bool quantize_measured_same_bits(const ErrorSums& a, const ErrorSums& b) {
  const auto is_same = [](double x, double y) {
    return std::bit_cast<uint64_t>(x) == std::bit_cast<uint64_t>(y) || (std::isnan(x) && std::isnan(y));
  };
  return a.count == b.count && is_same(a.signal, b.signal) && is_same(a.quantized, b.quantized) &&
         is_same(a.noise, b.noise) && is_same(a.max_abs, b.max_abs);
}

/// Grids of one dtype: signed ones, or unsigned ones of which some have fractional zero points.
std::vector<Affine> grids_of(size_t runs, bool is_signed) {
  std::vector<Affine> all;
  for (size_t i = 0; i < runs; ++i) {
    const float scale = (i % 5 == 3 ? -0.013f : 0.013f) * static_cast<float>(i % 7 + 1);
    const float zero_point = static_cast<float>(i % 9) + (!is_signed && i % 4 == 1 ? 0.5f : 0.0f);
    const float high = i % 2 == 0 ? 15.0f : 255.0f;
    if (is_signed)
      all.push_back({scale, 1.0f / scale, i % 3 == 0 ? 0.0f : -zero_point, i % 2 == 0 ? -8.0f : -128.0f,
                     i % 2 == 0 ? 7.0f : 127.0f});
    else
      all.push_back({scale, 1.0f / scale, zero_point, 0, high});
  }
  return all;
}

TEST_CASE("codes and their error in one pass equal the oracle, and the three kernels that do it one by one") {
  for (const size_t run : {size_t{32}, size_t{64}, size_t{96}, size_t{128}, size_t{1024}})
    for (size_t n = kMeasuredRun; n <= kErrorBlock; n += kMeasuredRun)
      for (const Content content : {Content::finite, Content::with_specials})
        for (const bool is_signed : {false, true}) {
          const size_t offset = n / kMeasuredRun % 4;
          const std::vector<float> values = test_values(n + offset, content, static_cast<uint32_t>(n + run));
          const std::span<const float> x = std::span(values).subspan(offset);
          const std::vector<Affine> grids = grids_of((n + run - 1) / run, is_signed);
          for_each_arch([&] {
            ErrorSums sums, expected;
            check_same<uint8_t>(
                n, offset, [&](uint8_t* codes) { sums = quantize_measured(x, grids.data(), run, codes); },
                [&](uint8_t* codes) { expected = reference::quantize_measured(x, grids.data(), run, codes); });
            std::vector<float> y(n);
            check_same<uint8_t>(
                n, offset, [&](uint8_t* to) { quantize_measured(x, grids.data(), run, to); },
                [&](uint8_t* to) {
                  quantize_codes8(x, grids.data(), run, RoundMethod::half_even, Path::real, to);
                  dequantize_codes8({to, n}, is_signed, grids.data(), run, y.data());
                });
            REQUIRE(is_in_range(sums) == is_in_range(expected));
            if (!is_in_range(sums)) return;
            REQUIRE(quantize_measured_same_bits(sums, expected));
            REQUIRE(quantize_measured_same_bits(sums, error_between(x, y.data())));
          });
        }
}

}  // namespace
}  // namespace wasmquant::kernels
