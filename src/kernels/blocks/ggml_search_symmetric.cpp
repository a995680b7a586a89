// Searches the scale of sub-blocks, x ~ scale * l, l = -levels..levels - 1. For given codes, weighted least squares
// gives scale = X_l / L2 with gain X_l^2 / L2, where X_l = sum w x l, L2 = sum w l^2.
#include "kernels/dispatch.h"
#include "kernels/ggml_weights.h"

namespace wasmquant::kernels {

/// Tries factors near -levels / extreme.
struct SearchSymmetric {
  template <class Arch>
  void operator()(Arch, const SearchInput& in, float levels, SearchResult* result) const noexcept {
    SearchResult& out = *result;
    using W = Eight<Arch>;
    const size_t n = in.length == 16 ? 16 : 32;
    WeightedLanes<Arch> lanes(in);
    const W zero = W::all(0.0f), lowest = W::all(-levels), highest = W::all(levels - 1);
    const W extreme = extreme_of<Arch>(lanes.x, n);
    const auto is_empty = extreme.magnitude() < W::all(kEmptyBelow);
    const W divisor = is_empty.choose(W::all(1.0f), extreme);
    W wx[32];
    for (size_t i = 0; i < n; ++i) wx[i] = lanes.w[i] * lanes.x[i];

    const simd::NearestInt<Arch> nearest;
    W sum_xl, sum_l2;
    const auto fit = [&](const W& factor) {
      sum_xl = sum_l2 = zero;
      for (size_t i = 0; i < n; ++i) {
        const W position = (factor * lanes.x[i]).clamped(lowest, highest);
        const W code = W::make([&](size_t k) { return nearest.whole(position.part[k]); });
        sum_xl = sum_xl + wx[i] * code;
        sum_l2 = sum_l2 + lanes.w[i] * code * code;
      }
    };
    W best_factor = lowest / divisor;
    fit(best_factor);
    W scale = (sum_l2 != zero).choose(sum_xl / sum_l2, zero), best = scale * sum_xl;
    for (int32_t k = -9; k <= 9; ++k) {
      if (k == 0) continue;
      const W factor = W::all(-(levels + 0.1f * static_cast<float>(k))) / divisor;
      fit(factor);
      const auto is_better = (sum_l2 > zero) & (sum_xl * sum_xl > best * sum_l2);
      scale = is_better.choose(sum_xl / sum_l2, scale);
      best = is_better.choose(scale * sum_xl, best);
      best_factor = is_better.choose(factor, best_factor);
    }
    is_empty.choose(zero, scale).store(out.scale);
    zero.store(out.minimum);
    is_empty.choose(zero, best_factor).store(out.factor);
    zero.store(out.add);
    lanes.sum.store(out.weight);
    float magnitude[kSearchWidth];
    extreme.magnitude().store(magnitude);
    for (size_t lane = 0; lane < kSearchWidth; ++lane) out.is_empty[lane] = magnitude[lane] < kEmptyBelow;
  }
};

/// Moves one code at a time to its best value given all others, while the gain grows.
struct SearchDescent {
  template <class Arch>
  void operator()(Arch, const float* in, float* scale, uint8_t* out) const noexcept {
    using W = Eight<Arch>;
    constexpr size_t kLength = 16;
    const W zero = W::all(0.0f), lowest = W::all(-4.0f), highest = W::all(3.0f);
    W x[kLength], w[kLength], wx[kLength], codes[kLength], sum_xl = zero, sum_l2 = zero;
    load_lanes<Arch>(in, kLength, x);
    const W extreme = extreme_of<Arch>(x, kLength);
    const auto is_empty = extreme.magnitude() < W::all(kEmptyBelow);
    const W factor = lowest / is_empty.choose(W::all(1.0f), extreme);
    const auto code_at = [&](const W& position) {
      return W::make(
          [&](size_t k) { return nearest_wrapped<Arch>(position.part[k], lowest.part[k], highest.part[k]); });
    };
    for (size_t i = 0; i < kLength; ++i) {
      w[i] = x[i] * x[i];
      wx[i] = w[i] * x[i];
      codes[i] = code_at(factor * x[i]);
      sum_xl = sum_xl + wx[i] * codes[i];
      sum_l2 = sum_l2 + w[i] * codes[i] * codes[i];
    }
    // A lane that does not change in one round does not change in later ones.
    bool has_changed = true;
    for (int round = 0; round < 5 && has_changed; ++round) {
      has_changed = false;
      for (size_t i = 0; i < kLength; ++i) {
        W xl = sum_xl - wx[i] * codes[i], l2 = sum_l2 - w[i] * codes[i] * codes[i];
        const W other = code_at(x[i] * l2 / xl);
        auto moves = (xl > zero) & (other != codes[i]);
        xl = xl + wx[i] * other;
        l2 = l2 + w[i] * other * other;
        moves = moves & (l2 > zero) & (xl * xl * sum_l2 > sum_xl * sum_xl * l2);
        if (!moves.any()) continue;
        has_changed = true;
        codes[i] = moves.choose(other, codes[i]);
        sum_xl = moves.choose(xl, sum_xl);
        sum_l2 = moves.choose(l2, sum_l2);
      }
    }
    is_empty.choose(zero, (sum_l2 > zero).choose(sum_xl / sum_l2, zero)).store(scale);
    float row[kSearchWidth];
    for (size_t i = 0; i < kLength; ++i) {
      is_empty.choose(lowest, codes[i]).store(row);
      for (size_t lane = 0; lane < kSearchWidth; ++lane)
        out[lane * kLength + i] = static_cast<uint8_t>(static_cast<int32_t>(row[lane]) + 4);
    }
  }
};

}  // namespace wasmquant::kernels

namespace WASMQUANT_ENTRY_NAMESPACE {

void search_symmetric(const SearchInput& in, float levels, SearchResult& out) noexcept {
  run<SearchSymmetric>(in, levels, &out);
}
void search_descent(const float* x, float* scale, uint8_t* codes) noexcept { run<SearchDescent>(x, scale, codes); }

}  // namespace WASMQUANT_ENTRY_NAMESPACE
