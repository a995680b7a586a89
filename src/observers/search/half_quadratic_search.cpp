#include "observers/search/half_quadratic_search.h"

#include <algorithm>
#include <cmath>

#include "kernels/search.h"
#include "numeric/exponential.h"

namespace wasmquant {
namespace {

constexpr double kBeta = 10, kKappa = 1.01;
constexpr int kPatience = 2;  // steps without gain: one of each kind

}  // namespace

HalfQuadraticSearch::Step HalfQuadraticSearch::step(const QParams& candidate, double beta) const noexcept {
  const kernels::Affine grid = grid_of_(candidate);
  kernels::HalfQuadratic at;
  at.scale = grid.scale * group_.unit();
  at.inverse = (spec_.grid.divides ? 1 / grid.scale : grid.inverse) * group_.inverse_unit();
  at.zero_point = grid.zero_point;
  at.quant_min = grid.quant_min;
  at.quant_max = grid.quant_max;
  at.round = spec_.round_method;
  at.exponent = static_cast<float>(options_.norm - 1);
  // |d/s| - |d/s|^(p - 1) / beta, times s.
  at.shrink =
      static_cast<float>(exp2_of((2 - options_.norm) * log2_of(std::fabs(static_cast<double>(at.scale)))) / beta);
  const kernels::HalfQuadraticSums sums = kernels::half_quadratic(group_.values(), at);
  return {sums.loss, sums.zero / static_cast<double>(group_.values().size()),
          sums.squares > 0 ? sums.cross / sums.squares * static_cast<double>(group_.inverse_unit()) : 0};
}

// What ScaleRule gives for a range scaled by the same factor as the first one.
QParams HalfQuadraticSearch::with_scale(const SearchCandidate& start, const QParams& now, double scale) const noexcept {
  const double threshold = is_asymmetric() ? static_cast<double>(start.max) - static_cast<double>(start.min)
                                           : std::max(-static_cast<double>(start.min), static_cast<double>(start.max));
  const double wanted = threshold * (scale / static_cast<double>(start.qparams.scale));
  if (!(wanted > 0) || !(wanted < 0x1p127)) return now;
  return {std::copysign(rule_.of_threshold(static_cast<float>(wanted), 0.0f).scale, now.scale), now.zero_point};
}

QParams HalfQuadraticSearch::with_zero_point(QParams now, double zero_point) const noexcept {
  now.zero_point = static_cast<float>(zero_point);
  if (spec_.zero_point_type == ZeroPointType::int32)
    now.zero_point = std::clamp(std::nearbyint(now.zero_point), static_cast<float>(quant_min_of(spec_)),
                                static_cast<float>(quant_max_of(spec_)));
  return now;
}

void HalfQuadraticSearch::improve(const SearchCandidate& start, SearchCandidate& best) const {
  const auto differ = [](const QParams& a, const QParams& b) {
    return a.scale != b.scale || a.zero_point != b.zero_point;
  };
  QParams now = start.qparams;
  double beta = kBeta, least = start.loss;
  int without_gain = 0;
  bool is_zero_next = is_asymmetric();
  for (uint32_t i = 0; i < options_.iterations && without_gain < kPatience; ++i, beta *= kKappa) {
    const Step found = step(now, beta);
    if (found.loss < best.loss) {
      best.qparams = now;
      best.loss = found.loss;
      const auto code = [&](int64_t q) { return (static_cast<float>(q) - now.zero_point) * now.scale; };
      best.min = std::min(code(quant_min_of(spec_)), code(quant_max_of(spec_)));
      best.max = std::max(code(quant_min_of(spec_)), code(quant_max_of(spec_)));
    }
    if (found.loss < least || i == 0) {
      least = found.loss;
      without_gain = 0;
    } else {
      ++without_gain;
    }
    const QParams by_zero = is_asymmetric() ? with_zero_point(now, found.mean_zero) : now;
    const QParams by_scale = with_scale(start, now, found.scale);
    const bool takes_zero = is_zero_next ? differ(by_zero, now) : !differ(by_scale, now);
    const QParams next = takes_zero ? by_zero : by_scale;
    if (!differ(next, now)) return;
    now = next;
    is_zero_next = is_asymmetric() && !takes_zero;
  }
}

SearchCandidate HalfQuadraticSearch::operator()(SearchCandidate whole, SearchCandidate other) const {
  whole.loss = step(whole.qparams, kBeta).loss;
  other.loss = step(other.qparams, kBeta).loss;
  SearchCandidate best = other.loss < whole.loss ? other : whole;
  improve(whole, best);
  improve(other, best);
  return best.loss < whole.loss * kLeastGain ? best : whole;
}

}  // namespace wasmquant
