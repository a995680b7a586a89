#include "kernels/exponential.h"

#include "kernels/variants.h"

namespace wasmquant::kernels {
namespace {

/// Exponents of use, with the ends of the range and numbers that stay as they are.
std::vector<float> exponents(size_t count, uint32_t salt) {
  std::vector<float> x = test_values(count, Content::finite, salt);
  for (size_t i = 0; i < count; ++i) {
    x[i] = i % 5 == 0 ? x[i] : x[i] * 0.01f;
    if (i % 31 == 3) x[i] = -std::numeric_limits<float>::infinity();
    if (i % 37 == 5) x[i] = 0.0f;
  }
  return x;
}

constexpr Activation kActivations[] = {Activation::silu, Activation::gelu_tanh, Activation::gelu};

TEST_CASE("exponentials, caps and gates equal their oracles to the bit") {
  for_each_arch_and_length([](size_t n, size_t offset) {
    const std::vector<float> values = exponents(n + offset, 1), others = exponents(n + offset, 2);
    const std::span<const float> x = std::span(values).subspan(offset);
    float sum = 0, expected = 0;
    check_same<float>(
        n, offset, [&](float* y) { sum = exponentials(x, 0.7f, y); },
        [&](float* y) { expected = reference::exponentials(x, 0.7f, y); });
    REQUIRE(sum == expected);
    const auto in_place = [&](auto&& change) {
      return [&x, change](float* y) {
        std::copy(x.begin(), x.end(), y);
        change(std::span<float>(y, x.size()));
      };
    };
    check_same<float>(n, offset, in_place([&](std::span<float> y) { soft_cap(y, 30.0f); }),
                      in_place([&](std::span<float> y) { reference::soft_cap(y, 30.0f); }));
    const float* up = others.data() + offset;
    for (const Activation activation : kActivations)
      check_same<float>(n, offset, in_place([&](std::span<float> y) { activate_gate(activation, y, up); }),
                        in_place([&](std::span<float> y) { reference::activate_gate(activation, y, up); }));
  });
}

TEST_CASE("exp is within 2e-7 of the true value, and normal at the ends") {
  double worst = 0;
  for (double at = -87; at <= 88; at += 0.0037) {
    const auto x = static_cast<float>(at);
    worst = std::max(worst, std::fabs(reference::exp(x) / std::exp(double{x}) - 1));
  }
  CHECK(worst < 2e-7);
  CHECK(reference::exp(0.0f) == 1.0f);
  CHECK(reference::exp(-1e30f) == reference::exp(-87.0f));
  CHECK(reference::exp(-1e30f) >= std::numeric_limits<float>::min());
  CHECK(std::isfinite(reference::exp(1e30f)));
  CHECK(std::isnan(reference::exp(std::numeric_limits<float>::quiet_NaN())));
}

TEST_CASE("activations and caps against the C library in float64") {
  constexpr double kSqrt2 = 1.41421356237309504880, kPi = 3.14159265358979323846;
  for (double at = -12; at <= 12; at += 0.0113) {
    const auto g = static_cast<float>(at);
    const double x = g;
    const double expected[] = {x / (1 + std::exp(-x)),
                               x / 2 * (1 + std::tanh(std::sqrt(2 / kPi) * (x + 0.044715 * x * x * x))),
                               x / 2 * (1 + std::erf(x / kSqrt2))};
    for (const Activation activation : kActivations) {
      float value = g;
      const float up = 1;
      activate_gate(activation, {&value, 1}, &up);
      CHECK(std::fabs(value - expected[static_cast<size_t>(activation)]) <= 3e-7 * (1 + std::fabs(x)));
    }
    float capped = g * 10;
    soft_cap({&capped, 1}, 50);
    CHECK(std::fabs(capped - 50 * std::tanh(x * 10 / 50)) <= 2e-5);
  }
}

TEST_CASE("softmax sums to one and does not overflow") {
  for (const size_t n : {1, 2, 15, 16, 17, 300}) {
    std::vector<float> x = exponents(n, 3);
    for (float& v : x) v = std::isfinite(v) ? v + 1000.0f : -1000.0f;
    softmax(x);
    double sum = 0;
    for (const float v : x) sum += v;
    CHECK(std::fabs(sum - 1) < 1e-6);
  }
}

}  // namespace
}  // namespace wasmquant::kernels
