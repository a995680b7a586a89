#include "kernels/kernels.h"
#include "kernels/variants.h"

namespace wasmquant::kernels {
namespace {

bool same(const ErrorSums& a, const ErrorSums& b) {
  return std::bit_cast<uint64_t>(a.signal) == std::bit_cast<uint64_t>(b.signal) &&
         std::bit_cast<uint64_t>(a.quantized) == std::bit_cast<uint64_t>(b.quantized) &&
         std::bit_cast<uint64_t>(a.noise) == std::bit_cast<uint64_t>(b.noise) &&
         std::bit_cast<uint32_t>(a.max_abs) == std::bit_cast<uint32_t>(b.max_abs) && a.count == b.count &&
         a.x_not_finite == b.x_not_finite && a.y_not_finite == b.y_not_finite;
}

TEST_CASE("error sums equal their oracles to the last bit") {
  for_each_arch_and_length([](size_t n, size_t offset) {
    for (Content content : {Content::finite, Content::with_specials}) {
      const std::vector<float> x = test_values(n + offset, content, static_cast<uint32_t>(n));
      const std::vector<float> y = test_values(n + offset, content, 77);
      const std::span<const float> run = std::span(x).subspan(offset);
      REQUIRE(same(error_between(run, y.data() + offset), reference::error_between(run, y.data() + offset)));
    }
  });
}

TEST_CASE("error sums are close to float64 sums") {
  const std::vector<float> x = test_values(5000, Content::finite, 5), y = test_values(5000, Content::finite, 6);
  const ErrorSums exact = reference::error_in_float64(x, y.data());
  for_each_arch([&] {
    const ErrorSums sums = error_between(x, y.data());
    CHECK(sums.signal == doctest::Approx(exact.signal).epsilon(1e-6));
    CHECK(sums.quantized == doctest::Approx(exact.quantized).epsilon(1e-6));
    CHECK(sums.noise == doctest::Approx(exact.noise).epsilon(1e-6));
    CHECK(sums.max_abs == exact.max_abs);
    CHECK(sums.count == 5000);
  });
}

TEST_CASE("sums beyond float32 are accumulated in float64") {
  for_each_arch([] {
    for (float magnitude : {1e-25f, 1e25f, 1e-40f, 3e38f}) {
      std::vector<float> x(1500, magnitude), y(1500, magnitude * 0.5f);
      x[1499] = 1.0f;  // the second block stays in range
      const ErrorSums sums = error_between(x, y.data());
      const double square = static_cast<double>(magnitude) * static_cast<double>(magnitude);
      CAPTURE(magnitude);
      CHECK(sums.signal == doctest::Approx(1499 * square + 1).epsilon(1e-6));
      CHECK(sums.count == 1500);
    }
  });
}

TEST_CASE("non-finite pairs are counted separately, zeros give zeros") {
  for_each_arch([] {
    std::vector<float> x(100, 2.0f), y(100, 1.0f);
    x[7] = std::numeric_limits<float>::infinity();
    y[8] = float_of(0x7FC00000);
    ErrorSums sums = error_between(x, y.data());
    CHECK(sums.count == 98);
    CHECK(sums.signal == 98 * 4.0);
    CHECK(sums.noise == 98.0);
    CHECK(sums.max_abs == 1.0f);
    CHECK(sums.x_not_finite == 1);
    CHECK(sums.y_not_finite == 1);
    CHECK_FALSE(sums.all_finite());
    sums.append(sums);
    CHECK(sums.x_not_finite + sums.y_not_finite == 4);
    const std::vector<float> zero(100, 0.0f);
    sums = error_between(zero, zero.data());
    CHECK(sums.count == 100);
    CHECK(sums.signal == 0.0);
    CHECK(sums.all_finite());
    CHECK(sums.max_abs == 0.0f);
    CHECK(error_between({}, nullptr).count == 0);
  });
}

}  // namespace
}  // namespace wasmquant::kernels
