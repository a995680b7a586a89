// Sub-blocks of a search as lanes: their elements and weights (ggml_stages.h, Weighting).
#pragma once
#include "kernels/eight.h"
#include "kernels/ggml_stages.h"

namespace wasmquant::kernels {

/// Elements and weights of kSearchWidth sub-blocks, one per lane.
template <class Arch>
struct WeightedLanes {
  using W = Eight<Arch>;
  W x[32], w[32];
  W sum;  // of weights

  explicit XSIMD_INLINE WeightedLanes(const SearchInput& in) noexcept {
    const size_t n = in.length == 16 ? 16 : 32;
    load_lanes<Arch>(in.x, n, x);
    switch (in.weighting) {
      case Weighting::magnitude:
        for (size_t i = 0; i < n; ++i) w[i] = x[i].magnitude();
        break;
      case Weighting::rms_magnitude: {
        W squares = W::all(0.0f);
        for (size_t i = 0; i < n; ++i) squares = squares + x[i] * x[i];
        const W rms = (squares * W::all(1.0f / 32)).root();
        for (size_t i = 0; i < n; ++i) w[i] = rms + x[i].magnitude();
        break;
      }
      case Weighting::square:
        for (size_t i = 0; i < n; ++i) w[i] = x[i] * x[i];
        break;
      case Weighting::given:
        load_lanes<Arch>(in.importance, n, w);
        break;
      case Weighting::given_energy: {
        load_lanes<Arch>(in.importance, n, w);
        const W energy = W::load(in.energy);
        for (size_t i = 0; i < n; ++i) w[i] = w[i] * (energy + x[i] * x[i]).root();
        break;
      }
    }
    sum = W::all(0.0f);
    for (size_t i = 0; i < n; ++i) sum = sum + w[i];
  }
};

/// The element of the largest magnitude per lane, the first of equals; 0 when all are zero.
template <class Arch>
XSIMD_INLINE Eight<Arch> extreme_of(const Eight<Arch>* x, size_t length) noexcept {
  Eight<Arch> extreme = Eight<Arch>::all(0.0f), largest = extreme;
  for (size_t i = 0; i < length; ++i) {
    const Eight<Arch> magnitude = x[i].magnitude();
    const auto is_larger = magnitude > largest;
    largest = is_larger.choose(magnitude, largest);
    extreme = is_larger.choose(x[i], extreme);
  }
  return extreme;
}

/// A sub-block whose magnitudes are all below this counts as zero.
inline constexpr float kEmptyBelow = 1e-15f;

}  // namespace wasmquant::kernels
