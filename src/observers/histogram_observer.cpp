// per_tensor observers that choose a range from the histogram of the data: pass 1 finds the range of the bins, pass 2
// counts. Source: AMD Quark, spec 4.6 to 4.9.
#include <algorithm>

#include "observers/moments_observer.h"
#include "observers/registry.h"
#include "observers/statistics/histogram.h"
#include "observers/statistics/histogram_range.h"

namespace wasmquant {
namespace {

constexpr double kHistogramPercentile = 99.99999999;
constexpr uint32_t kMostQuantizedBins = 128;  // as ONNX Runtime; fewer for dtypes with fewer codes

uint32_t default_bins(ObserverMethod method) noexcept {
  switch (method) {
    case ObserverMethod::percentile:
      return 4200;
    case ObserverMethod::least_squares_search:
      return 256;
    case ObserverMethod::tqt_kl_j:
      return 4096;
    default:
      return 2048;
  }
}

// Magnitudes where both signs are treated alike. Symmetric unsigned codes cannot represent negative values, so the mse
// method counts signed values; Quark's method counts magnitudes all the same.
bool counts_magnitudes(const QuantizationSpec& spec, ObserverMethod method) noexcept {
  const DtypeInfo& dtype = info_of(spec.dtype);
  const bool symmetric = spec.symmetric || !dtype.is_integer;
  switch (method) {
    case ObserverMethod::percentile:
    case ObserverMethod::mse_last_bins:
      return symmetric;
    case ObserverMethod::mse:
      return symmetric && (dtype.is_signed || !dtype.is_integer);
    default:
      return method == ObserverMethod::tqt_kl_j;
  }
}

}  // namespace

class HistogramObserver final : public Observer {
 public:
  /// `method` is one of percentile, mse, mse_last_bins, least_squares_search, tqt_kl_j, entropy.
  HistogramObserver(const QuantizationSpec& spec, ObserverMethod method, const ObserverOptions& options) noexcept;

 private:
  void start_pass() override;
  void count(std::span<const float> x, uint64_t at) noexcept override;
  void merge_counts(const Observer& other) noexcept override;
  void choose(Observation& observation) const override;

  ObserverMethod method_;
  ObserverOptions options_;
  Histogram histogram_;
};

HistogramObserver::HistogramObserver(const QuantizationSpec& spec, ObserverMethod method,
                                     const ObserverOptions& options) noexcept
    : Observer(spec, 2, false), method_(method), options_(options) {
  if (options_.bins == 0) options_.bins = default_bins(method);
  if (options_.percentile == 0) options_.percentile = kHistogramPercentile;
}

void HistogramObserver::start_pass() {
  histogram_.of_magnitudes = counts_magnitudes(spec(), method_);
  histogram_.skips_zeros = method_ == ObserverMethod::percentile;
  double low = 0, high = 0;
  if (batch_count() != 0 && range(0).min()[0] <= range(0).max()[0]) {
    low = range(0).min()[0];
    high = range(0).max()[0];
  }
  if (histogram_.of_magnitudes) {
    high = std::max(-low, high);
    low = 0;
  } else if (method_ == ObserverMethod::entropy) {
    high = std::max(-low, high);
    low = -high;
  }
  histogram_.open(low, high, options_.bins);
}

void HistogramObserver::count(std::span<const float> x, uint64_t) noexcept { histogram_.add(x); }

void HistogramObserver::merge_counts(const Observer& other) noexcept {
  histogram_.add(static_cast<const HistogramObserver&>(other).histogram_);  // same spec, so the same class
}

void HistogramObserver::choose(Observation& observation) const {
  float &min = observation.min[0], &max = observation.max[0];
  switch (method_) {
    case ObserverMethod::percentile:
      choose_percentile(histogram_, options_.percentile, min, max);
      break;
    case ObserverMethod::mse:
      choose_least_error(histogram_, spec(), observation);
      break;
    case ObserverMethod::mse_last_bins:
      choose_last_bins(histogram_, spec(), options_.first_candidate, observation);
      break;
    case ObserverMethod::entropy:
      choose_entropy(histogram_, std::min(kMostQuantizedBins, 1u << info_of(spec().dtype).bits), min, max);
      break;
    case ObserverMethod::tqt_kl_j: {
      const float scale = tqt_scale_of(kl_j_threshold(histogram_, info_of(spec().dtype).bits), spec());
      min = static_cast<float>(quant_min_of(spec())) * scale;
      max = static_cast<float>(quant_max_of(spec())) * scale;
      observation.qparams = {QParams{scale, 0.0f}};
      return;
    }
    default:
      choose_least_squares(histogram_, info_of(spec().dtype).bits, min, max);
  }
  observation.qparams = {qparams_of(min, max, spec())};
}

std::unique_ptr<Observer> make_histogram_observer(const QuantizationSpec& spec, const ObserverOptions& options) {
  return std::make_unique<HistogramObserver>(spec, info_of(spec.observer).method, options);
}

}  // namespace wasmquant
