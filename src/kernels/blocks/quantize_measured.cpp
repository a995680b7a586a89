// float32 to one-byte integer codes and the error of their values, in one pass over x; quantize_codes8,
// dequantize_codes8 and error_between would need three. Formula of the codes: quantize_int.cpp.
#include "kernels/dispatch.h"
#include "kernels/error_tree.h"
#include "kernels/reference/reference.h"

namespace wasmquant::kernels {

struct QuantizeMeasured {
  template <class Arch>
  ErrorSums operator()(Arch, std::span<const float> x, const Affine* grids, size_t run, uint8_t* codes) const noexcept {
    using F = simd::F<Arch>;
    using U = simd::U<Arch>;
    constexpr size_t kLanes = simd::lanes<Arch>;
    static_assert(kMeasuredRun == 2 * kErrorLanes && kErrorPerPass == 2);
    const simd::NearestInt<Arch> nearest;
    const U low_byte = simd::constant<Arch>(0xFFu);
    ErrorRegisters<Arch> all;
    for (size_t first = 0; first < kErrorRegisters<Arch>; first += kErrorPerPass) {
      ErrorPass<Arch> pass;
      const Affine* a = grids;
      for (size_t begin = 0; begin < x.size(); begin += run, ++a) {
        const F inverse(a->inverse), zero_point(a->zero_point), low(a->quant_min), high(a->quant_max), scale(a->scale);
        const float* from = x.data() + begin + first * kLanes;
        uint8_t* to = codes + begin + first * kLanes;
        const float* const end = from + (x.size() - begin < run ? x.size() - begin : run);
        for (; from != end; from += kMeasuredRun, to += kMeasuredRun) {
          std::array<U, 4> q;  // two registers for the first sixteen elements, two for the rest
          for (size_t k = 0; k < 4; ++k) {
            const F original = simd::load<Arch>(from + k / 2 * kErrorLanes + k % 2 * kLanes);
            const F v = simd::clamp<Arch>(simd::zero_nan<Arch>(original) * inverse + zero_point, low, high);
            q[k] = nearest.bits(v) & low_byte;
            pass.add(k % 2, original, (nearest.whole(v) - zero_point) * scale);
          }
          simd::store_apart<Arch>(simd::narrow_bytes<Arch>(q), to, to + kErrorLanes);
        }
      }
      all.take(first, pass);
    }
    return all.sums(x.size());
  }
};

}  // namespace wasmquant::kernels

namespace WASMQUANT_ENTRY_NAMESPACE {

ErrorSums quantize_measured(std::span<const float> x, const Affine* grids, size_t run, uint8_t* codes) noexcept {
  return kernels::run<QuantizeMeasured>(x, grids, run, codes);
}

}  // namespace WASMQUANT_ENTRY_NAMESPACE
