// Searches scale and minimum of sub-blocks, x ~ scale * l + minimum, l = 0..levels. For given codes l, weighted least
// squares gives   scale = (W X_l - X L) / D,   minimum = (L2 X - L X_l) / D,   D = W L2 - L^2
// with W = sum w, X = sum w x, L = sum w l, L2 = sum w l^2, X_l = sum w l x.
#include <limits>

#include "kernels/dispatch.h"
#include "kernels/ggml_weights.h"

namespace wasmquant::kernels {

template <bool AbsoluteError>
struct SearchAffine {
  template <class Arch>
  struct Sums {
    Eight<Arch> l, l2, xl;
  };

  // Codes of one factor, and their weighted sums. `is_near`: no position leaves nearest_int's range, which the outermost elements show.
  template <class Arch>
  static inline __attribute__((always_inline)) Sums<Arch> choose_codes(const WeightedLanes<Arch>& lanes, size_t n,
                                                                       const Eight<Arch>& factor,
                                                                       const Eight<Arch>& minimum,
                                                                       const Eight<Arch>& levels, bool is_near,
                                                                       Eight<Arch>* codes) noexcept {
    using W = Eight<Arch>;
    const W zero = W::all(0.0f);
    const simd::NearestInt<Arch> nearest;
    Sums<Arch> sums{zero, zero, zero};
    const auto take = [&](size_t i, const W& code) __attribute__((always_inline)) {
      codes[i] = code;
      const W weighted = lanes.w[i] * code;
      sums.l = sums.l + weighted;
      sums.l2 = sums.l2 + weighted * code;
      sums.xl = sums.xl + weighted * lanes.x[i];
    };
    if (is_near) {
      for (size_t i = 0; i < n; ++i) {
        const W position = (factor * (lanes.x[i] - minimum)).clamped(zero, levels);
        take(i, W::make([&](size_t k) { return nearest.whole(position.part[k]); }));
      }
    } else {
      for (size_t i = 0; i < n; ++i) {
        const W position = factor * (lanes.x[i] - minimum);
        take(i,
             W::make([&](size_t k) { return nearest_wrapped<Arch>(position.part[k], zero.part[k], levels.part[k]); }));
      }
    }
    return sums;
  }

  template <class Arch>
  static inline __attribute__((always_inline)) Eight<Arch> error_of(const WeightedLanes<Arch>& lanes, size_t n,
                                                                    const Eight<Arch>& scale,
                                                                    const Eight<Arch>& minimum,
                                                                    const Eight<Arch>* codes) noexcept {
    Eight<Arch> error = Eight<Arch>::all(0.0f);
    for (size_t i = 0; i < n; ++i) {
      const Eight<Arch> diff = scale * codes[i] + minimum - lanes.x[i];
      error = error + lanes.w[i] * (AbsoluteError ? diff.magnitude() : diff * diff);
    }
    return error;
  }

  template <class Arch>
  void operator()(Arch, const SearchInput& in, const AffineSearch& search, SearchResult* result) const noexcept {
    SearchResult& out = *result;
    using W = Eight<Arch>;
    const size_t n = in.length == 16 ? 16 : 32;
    const WeightedLanes<Arch> lanes(in);
    const W zero = W::all(0.0f), one = W::all(1.0f), levels = W::all(search.levels);

    W low = lanes.x[0], high = lanes.x[0], sum_x = lanes.w[0] * lanes.x[0];
    for (size_t i = 1; i < n; ++i) {
      for (size_t k = 0; k < W::kParts; ++k) {
        low.part[k] = simd::smaller<Arch>(low.part[k], lanes.x[i].part[k]);
        high.part[k] = simd::larger<Arch>(high.part[k], lanes.x[i].part[k]);
      }
      sum_x = sum_x + lanes.w[i] * lanes.x[i];
    }
    const W least = low;
    W minimum = (low > zero).choose(zero, low);
    const auto is_constant = high == minimum;
    const W reach = W::all(4194303.0f), infinity = W::all(std::numeric_limits<float>::infinity());
    W codes[32], scale, best_error, best_factor, best_from;
    for (int32_t step = -1; step <= search.steps; ++step) {  // -1: the scale of the range
      const bool is_first = step < 0;
      const float numerator =
          is_first ? search.levels : search.first + search.step * static_cast<float>(step) + search.levels;
      const W factor = W::all(numerator) / is_constant.choose(one, high - minimum);

      const auto fits =
          ((factor * (high - minimum)).magnitude() <= reach) & ((factor * (least - minimum)).magnitude() <= reach);
      const bool is_near = (search.guarded && !is_first) || fits.all();
      const auto [sum_l, sum_l2, sum_xl] = choose_codes(lanes, n, factor, minimum, levels, is_near, codes);
      const W determinant = lanes.sum * sum_l2 - sum_l * sum_l;
      W new_scale = (lanes.sum * sum_xl - sum_x * sum_l) / determinant;
      W new_minimum = (sum_l2 * sum_x - sum_l * sum_xl) / determinant;
      const auto is_above = new_minimum > zero;
      new_scale = is_first ? one / factor : is_above.choose(sum_xl / sum_l2, new_scale);
      new_minimum = is_first ? minimum : is_above.choose(zero, new_minimum);
      const W error = error_of(lanes, n, new_scale, new_minimum, codes);
      if (is_first) {
        best_error = error;
        best_factor = (factor == infinity).choose(zero, factor);  // infinite positions wrap to code 0
        best_from = minimum;
        scale = new_scale;
        continue;
      }
      const auto is_better = (determinant > zero) & (error < best_error);
      if (!is_better.any()) continue;
      best_error = is_better.choose(error, best_error);
      best_factor = is_better.choose(factor, best_factor);
      best_from = is_better.choose(minimum, best_from);
      scale = is_better.choose(new_scale, scale);
      minimum = is_better.choose(new_minimum, minimum);
    }
    is_constant.choose(zero, scale).store(out.scale);
    minimum.store(out.minimum);
    is_constant.choose(zero, best_factor).store(out.factor);
    best_from.negated().store(out.add);
    lanes.sum.store(out.weight);
    for (bool& lane : out.is_empty) lane = false;
  }
};

}  // namespace wasmquant::kernels

namespace WASMQUANT_ENTRY_NAMESPACE {

void search_affine(const SearchInput& in, const AffineSearch& search, SearchResult& out) noexcept {
  if (search.absolute_error)
    run<SearchAffine<true>>(in, search, &out);
  else
    run<SearchAffine<false>>(in, search, &out);
}

}  // namespace WASMQUANT_ENTRY_NAMESPACE
