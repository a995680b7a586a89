#include "observers/registry.h"

#include "observers/batch_range_observer.h"
#include "observers/histogram_observer.h"
#include "observers/min_max_observer.h"
#include "observers/moments_observer.h"
#include "observers/pow2_observer.h"
#include "observers/range_search_observer.h"
#include "observers/slice_search_observer.h"
#include "observers/threshold_observer.h"

namespace wasmquant {
namespace {

constexpr std::string_view kSuffix = "Observer";

}  // namespace

std::optional<ObserverId> observer_named(std::string_view name) noexcept {
  for (const ObserverInfo& row : kObservers)
    if (name == row.name || name == row.name.substr(0, row.name.size() - kSuffix.size())) return row.id;
  return std::nullopt;
}

std::optional<ObserverId> min_max_observer_for(QScheme qscheme) noexcept {
  for (const ObserverInfo& row : kObservers)
    if (row.qscheme == qscheme) return row.id;
  return std::nullopt;
}

std::unique_ptr<Observer> make_observer(const QuantizationSpec& spec, const ObserverOptions& options) {
  const ObserverMethod method = info_of(spec.observer).method;
  switch (method) {
    case ObserverMethod::min_max:
    case ObserverMethod::block_max:
    case ObserverMethod::placeholder:
      return std::make_unique<MinMaxObserver>(spec, method == ObserverMethod::placeholder);
    case ObserverMethod::pow2_min_max:
    case ObserverMethod::pow2_min_mse:
      return std::make_unique<Pow2Observer>(spec, method == ObserverMethod::pow2_min_mse, options.votes);
    case ObserverMethod::last_range:
    case ObserverMethod::moving_range:
      return std::make_unique<BatchRangeObserver>(spec, method == ObserverMethod::moving_range, options);
    case ObserverMethod::range_mse:
    case ObserverMethod::range_cross_entropy:
      return std::make_unique<RangeSearchObserver>(spec, method == ObserverMethod::range_cross_entropy, options);
    case ObserverMethod::mean_percentile:
    case ObserverMethod::mean_max:
    case ObserverMethod::threshold_mse:
    case ObserverMethod::mean_threshold_mse:
      return std::make_unique<ThresholdObserver>(spec, method, options);
    case ObserverMethod::lsq:
    case ObserverMethod::tqt_3sd:
      return std::make_unique<MomentsObserver>(spec, method);
    case ObserverMethod::mx_diffs:
    case ObserverMethod::slice_mse:
    case ObserverMethod::half_quadratic:
      return std::make_unique<SliceSearchObserver>(spec, method, options);
    default:
      return std::make_unique<HistogramObserver>(spec, method, options);
  }
}

Result<Observation> observe_tensor(const QuantizationSpec& spec, std::span<const float> x,
                                   const std::vector<uint64_t>& shape) {
  const std::unique_ptr<Observer> observer = make_observer(spec);
  TRY_VOID(observe(*observer, 0, x, shape));
  if (observer->passes() == 2) {
    TRY_VOID(observer->next_pass());
    TRY_VOID(observe(*observer, 0, x, shape));
  }
  return observer->finish();
}

}  // namespace wasmquant
