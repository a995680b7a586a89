// Error sums between values and their quantized values. Order of additions: error_lanes.h.
#include <algorithm>
#include <array>

#include "kernels/dispatch.h"
#include "kernels/error_tree.h"
#include "kernels/reference/reference.h"

namespace wasmquant::kernels {

/// The sums of one block.
struct SumErrorBlock {
  template <class Arch>
  ErrorSums operator()(Arch, std::span<const float> x, const float* y) const noexcept {
    constexpr size_t kLanes = simd::lanes<Arch>;
    const size_t whole = x.size() - x.size() % kErrorLanes;
    std::array<float, kErrorLanes> last_x{}, last_y{};  // zeros add nothing
    for (size_t i = whole; i < x.size(); ++i) {
      last_x[i - whole] = x[i];
      last_y[i - whole] = y[i];
    }
    ErrorRegisters<Arch> all;
    for (size_t first = 0; first < kErrorRegisters<Arch>; first += kErrorPerPass) {
      ErrorPass<Arch> pass;
      const auto add = [&](const float* from_x, const float* from_y) {
        for (size_t k = 0; k < kErrorPerPass; ++k) {
          const size_t at = (first + k) * kLanes;
          pass.add(k, simd::load<Arch>(from_x + at), simd::load<Arch>(from_y + at));
        }
      };
      for (size_t i = 0; i < whole; i += kErrorLanes) add(x.data() + i, y + i);
      if (whole < x.size()) add(last_x.data(), last_y.data());
      all.take(first, pass);
    }
    return all.sums(x.size());
  }
};

}  // namespace wasmquant::kernels

namespace WASMQUANT_ENTRY_NAMESPACE {

/// At most kErrorBlock elements.
static ErrorSums error_of_block(std::span<const float> x, const float* y) noexcept {
  const ErrorSums sums = run<SumErrorBlock>(x, y);
  return is_in_range(sums) ? sums : reference::error_in_float64(x, y);
}

ErrorSums error_between(std::span<const float> x, const float* y) noexcept {
  ErrorSums total;
  for (size_t begin = 0; begin < x.size(); begin += kErrorBlock)
    total.append(error_of_block(x.subspan(begin, std::min(kErrorBlock, x.size() - begin)), y + begin));
  return total;
}

}  // namespace WASMQUANT_ENTRY_NAMESPACE
