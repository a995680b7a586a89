// Quotients, for grids that divide by the scale instead of multiplying by its reciprocal.
#include "kernels/dispatch.h"
#include "kernels/reference/reference.h"

namespace wasmquant::kernels {

struct Divide {
  template <class Arch>
  void operator()(Arch, std::span<const float> x, const float* divisors, size_t stride, float* y) const noexcept {
    using F = simd::F<Arch>;
    constexpr size_t kLanes = simd::lanes<Arch>;
    size_t i = 0;
    if (stride == 0) {
      if (x.empty()) return;
      const F divisor(*divisors);
      for (; i + kLanes <= x.size(); i += kLanes) (simd::load<Arch>(x.data() + i) / divisor).store_unaligned(y + i);
    } else {
      for (; i + kLanes <= x.size(); i += kLanes)
        (simd::load<Arch>(x.data() + i) / simd::load<Arch>(divisors + i)).store_unaligned(y + i);
    }
    if (i < x.size()) reference::divide(x.subspan(i), divisors + i * stride, stride, y + i);
  }
};

}  // namespace wasmquant::kernels

namespace WASMQUANT_ENTRY_NAMESPACE {

void divide(std::span<const float> x, const float* divisors, size_t stride, float* y) noexcept {
  kernels::run<Divide>(x, divisors, stride, y);
}

}  // namespace WASMQUANT_ENTRY_NAMESPACE
