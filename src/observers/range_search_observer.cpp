// aihwkit's MSE and cross-entropy estimators (aihwkit-brevitas 1.5). The first batch fixes the reach of the ranges and
// whether all data is >= 0, for the whole tensor even with channels.
//   reach  max|x| + margin; if both ends are searched, the larger magnitude of min - margin and max + margin
//   flat (symmetric, or nothing below zero): ranges (-r, r) or (0, r)      else: (-r + s, r + s), integers only
//   grid      r = i * reach / N for i = 1..N, and s in steps of 2 r / (2^bits - 1), fewer than 2^bits / 4 of them to
//             either side, ends clamped to min - margin and max + margin; errors of all batches add up; the first of
//             the best
//   sections  Brent's method for r in [0.01 reach, reach], within it for s; only the last batch
// Cross entropy is of the whole tensor, over its second dimension; with sections, of each channel if there are three or
// more dimensions. The data is kept until finish: of all batches (grid) or the last.
#include <algorithm>
#include <limits>
#include <optional>

#include "observers/observer.h"
#include "observers/scale_groups.h"
#include "observers/search/bounded_minimum.h"
#include "observers/search/cross_entropy.h"
#include "observers/search/squared_error.h"
#include "quantize/quantize.h"

namespace wasmquant {
namespace {

struct Range {
  double low, high;
};
// Shifts of the grid to either side: those of 8 bits. Wider codes have as many in larger steps, not 2^bits / 4.
constexpr double kMostShifts = 64;

using LossOfRange = CallableRef<double(const Range&)>;

// What all searches of a tensor share.
struct Bounds {
  Bounds(const RangeObserver& first, const QuantizationSpec& spec, const ObserverOptions& options) noexcept
      : candidates(std::max(options.candidates, 1u)),
        intervals(static_cast<double>((uint64_t{1} << info_of(spec.dtype).bits) - 1)) {
    float min = std::numeric_limits<float>::infinity(), max = -min;
    for (const float value : first.min()) min = std::min(min, value);
    for (const float value : first.max()) max = std::max(max, value);
    if (min > max) min = max = 0;
    is_one_sided = min >= 0;
    is_flat = is_one_sided || spec.symmetric || !info_of(spec.dtype).is_integer;
    const double largest = std::max(std::fabs(double{min}), std::fabs(double{max}));
    const double margin = options.range_margin * (options.relative_margin ? largest : 1.0);
    bottom = min - margin;
    top = max + margin;
    reach = is_flat ? largest + margin : std::max(std::fabs(top), std::fabs(bottom));
    quarter = std::floor((intervals + 1) / 4);
    shifts = static_cast<uint32_t>(std::clamp(quarter, 1.0, kMostShifts));
    coarseness = std::max(quarter / kMostShifts, 1.0);
  }

  size_t table_size() const noexcept { return size_t{candidates} * (is_flat ? 1 : 2 * shifts); }
  // Candidate of the grid: by r, then by s, up before down.
  Range candidate(size_t index) const noexcept {
    const double step = reach / candidates;
    if (is_flat) return flat(step * static_cast<double>(index + 1));
    const size_t sides = 2 * shifts;
    const auto r = static_cast<double>(index / sides + 1);
    const double shift = static_cast<double>(index % sides / 2) * (2 * step * r / intervals) * coarseness;
    const double signed_shift = index % 2 == 0 ? shift : -shift;
    return {std::max(-step * r + signed_shift, bottom), std::min(step * r + signed_shift, top)};
  }
  Range flat(double r) const noexcept { return {is_one_sided ? 0 : -r, r}; }

  uint32_t candidates, shifts;
  double intervals, quarter, coarseness, bottom, top, reach;
  bool is_one_sided, is_flat;
};

Range search_sections(const Bounds& bounds, const LossOfRange& loss) noexcept {
  const double nearest = 0.01 * bounds.reach;
  if (bounds.is_flat)
    return bounds.flat(bounded_minimum([&](double r) { return loss(bounds.flat(r)); }, nearest, bounds.reach).at);
  const auto shifted = [&](double r) {
    const double most = 2 * r / bounds.intervals * bounds.quarter;
    return bounded_minimum([&](double s) { return loss({-r + s, r + s}); }, -most, most);
  };
  const double r = bounded_minimum([&](double at) { return shifted(at).value; }, nearest, bounds.reach).at;
  const double s = shifted(r).at;
  return {-r + s, r + s};
}

struct Grid {
  QuantizationSpec spec;
  QParams qparams;
  Grid(const QuantizationSpec& of, const Range& range) noexcept {
    const auto low = static_cast<float>(range.low), high = static_cast<float>(range.high);
    spec = spec_for_data(of, {&low, 1});
    qparams = qparams_of(low, high, spec);
  }
};

// Loss of elements that share a range.
class Loss {
 public:
  Loss(const QuantizationSpec& spec, std::span<const float> x, size_t row) : spec_(spec), x_(x), error_(x, row) {}
  Loss(const QuantizationSpec& spec, std::span<const float> x, const Classes& layout)
      : spec_(spec), x_(x), error_({}), entropy_(std::in_place, x, layout), y_(x.size()) {}

  double operator()(const Range& range) noexcept {
    const Grid grid(spec_, range);
    if (!entropy_) return error_(grid.spec, grid.qparams);
    Granularity g;
    g.inner = x_.size();
    fake_quantize(g, grid.spec, {&grid.qparams, 1}, x_, 0, y_.data());
    return (*entropy_)(y_);
  }

 private:
  const QuantizationSpec& spec_;
  std::span<const float> x_;
  SquaredError error_;
  std::optional<CrossEntropy> entropy_;
  std::vector<float> y_;
};

// Elements per row of sums: one index of the first dimension; for a channel, all (grid) or each (sections).
size_t row_of(std::span<const uint64_t> shape, size_t count, bool is_flat_group, bool by_grid) noexcept {
  if (is_flat_group) return by_grid ? count : 1;
  uint64_t elements = 1;
  for (const uint64_t length : shape) elements *= length;
  return shape.empty() || elements != count ? count : count / static_cast<size_t>(shape[0]);
}

}  // namespace

class RangeSearchObserver final : public Observer {
 public:
  RangeSearchObserver(const QuantizationSpec& spec, bool by_cross_entropy, const ObserverOptions& options)
      : Observer(spec, 1, !spec.is_dynamic,
                 options.search != SearchMethod::sections ? Data::all_batches : Data::last_batch),
        by_cross_entropy_(by_cross_entropy),
        options_(options) {}

 private:
  void choose(Observation& observation) const override;

  bool by_cross_entropy_;
  ObserverOptions options_;
};

void RangeSearchObserver::choose(Observation& observation) const {
  const Bounds bounds(range(0), spec(), options_);
  const size_t scales = observation.min.size(), last = batch_count() - 1;
  const bool by_grid = options_.search != SearchMethod::sections;
  const bool has_groups = scales > 1 && shape(last).size() > 2 && spec().ch_axis == 0 && !by_grid;
  const bool is_whole = by_cross_entropy_ && !has_groups;                 // one range for all
  std::vector<double> table(by_grid ? bounds.table_size() * scales : 0);  // [scales][candidates]
  for (size_t batch = by_grid ? 0 : last; batch <= last; ++batch) {
    if (range(batch).min().size() != scales || range(batch).granularity().element_count() == 0) continue;
    const Granularity one;
    const ScaleGroups groups(is_whole ? one : range(batch).granularity(), data(batch));
    for (size_t scale = 0; scale < groups.count(); ++scale) {
      const std::span<const float> x = groups[scale];
      if (x.empty()) continue;
      const std::span<const uint64_t> dimensions = std::span<const uint64_t>(shape(batch)).subspan(has_groups ? 1 : 0);
      Loss loss = by_cross_entropy_ ? Loss(spec(), x, classes_of(dimensions, x.size()))
                                    : Loss(spec(), x, row_of(dimensions, x.size(), scales > 1 && !has_groups, by_grid));
      Range found{};
      if (by_grid) {
        double* const sums = table.data() + scale * bounds.table_size();
        for (size_t i = 0; i < bounds.table_size(); ++i) sums[i] += loss(bounds.candidate(i));
        found = bounds.candidate(static_cast<size_t>(std::min_element(sums, sums + bounds.table_size()) - sums));
      } else {
        found = search_sections(bounds, [&](const Range& candidate) { return loss(candidate); });
      }
      for (size_t i = scale; i < (is_whole ? scales : scale + 1); ++i) {
        observation.min[i] = static_cast<float>(found.low);
        observation.max[i] = static_cast<float>(found.high);
      }
    }
  }
  observation.qparams.resize(scales);
  observation.second_scale = second_scale(observation);
  qparams_of_ranges(observation.min, observation.max, spec(), observation.second_scale, observation.qparams);
}

std::unique_ptr<Observer> make_range_search_observer(const QuantizationSpec& spec, const ObserverOptions& options) {
  return std::make_unique<RangeSearchObserver>(
      spec, info_of(spec.observer).method == ObserverMethod::range_cross_entropy, options);
}

}  // namespace wasmquant
