#include "kernels/kernels.h"
#include "kernels/variants.h"

namespace wasmquant::kernels {
namespace {

TEST_CASE("quotients equal their oracle, with one divisor or one per value, in place too") {
  for_each_arch_and_length([](size_t n, size_t offset) {
    const std::vector<float> values = test_values(n + offset, Content::finite);
    std::vector<float> divisors = test_values(n + offset, Content::finite, 1);
    for (float& d : divisors) d = d == 0 ? 0.5f : d;
    divisors.push_back(0.3f);
    const std::span<const float> x = std::span<const float>(values).subspan(offset);
    for (const size_t stride : {0, 1}) {
      check_same<float>(
          n, offset, [&](float* out) { divide(x, divisors.data() + offset, stride, out); },
          [&](float* out) { reference::divide(x, divisors.data() + offset, stride, out); });
      check_same<float>(
          n, offset,
          [&](float* out) {
            std::copy(x.begin(), x.end(), out);
            divide({out, n}, divisors.data() + offset, stride, out);
          },
          [&](float* out) { reference::divide(x, divisors.data() + offset, stride, out); });
    }
  });
}

}  // namespace
}  // namespace wasmquant::kernels
