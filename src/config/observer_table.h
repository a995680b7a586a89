// THE table of observers, from observers/observers.def. A config names them, the observers room makes them.
#pragma once
#include <array>
#include <string_view>

#include "config/qscheme.h"
#include "numeric/dtype.h"

namespace wasmquant {

enum class ObserverId : uint8_t {
#define WASMQUANT_OBSERVER(id, ...) id,
#include "observers/observers.def"
#undef WASMQUANT_OBSERVER
};

/// What an observer makes of the data it has seen. Source: AMD Quark observers, spec 4.
enum class ObserverMethod : uint8_t {
  min_max,               // 4.1: the whole range. Quark's bare histogram observer has no rule of its own and is the same
  block_max,             // 4.11: the largest magnitude of each block, kept across batches
  percentile,            // 4.7
  mse,                   // 4.8, candidates over the whole range
  mse_last_bins,         // 4.8 as Quark has it: the centres of the last three bins, minimum 0
  least_squares_search,  // 4.9: torch's HistogramObserver
  pow2_min_max,          // 4.4
  pow2_min_mse,          // 4.5
  placeholder,           // none: plain casts have no scale
  mx_diffs,              // 4.11: the better of two powers of two
  lsq,                   // 4.10: 2 mean|x| / sqrt(largest code)
  tqt_3sd,               // 4.10: the power of two above |mean| + 3 standard deviations
  tqt_kl_j,              // 4.10: that above the threshold with the least Jeffreys divergence
  // Our own
  slice_mse,       // the range of each channel or group with the least squared error
  half_quadratic,  // the least sum of |x - y|^p (HQQ)
  entropy,         // the range with the least Kullback-Leibler divergence, as ONNX Runtime
  // IBM aihwkit (aihwkit-brevitas 1.5)
  last_range,           // of the last batch, its tails cut off or not
  moving_range,         // a moving average of the batches' ranges
  range_mse,            // the range with the least squared error, beyond that of the data, too
  range_cross_entropy,  // the same by cross entropy
  // Brevitas (2.5, 2.7): what the scale divides, averaged over batches
  mean_percentile,     // order statistics
  mean_max,            // the largest magnitude or the length of the range
  threshold_mse,       // the threshold with the least squared error, then the zero point
  mean_threshold_mse,  // the same for activations, powers of two being taken of the average
};
enum class ObserverDtypes : uint8_t { any, integers, blocks, casts };

/// One row of observers.def.
struct ObserverInfo {
  ObserverId id;
  std::string_view name;  // Quark's class name
  QScheme qscheme;        // the one it serves
  ObserverMethod method;
  ObserverDtypes dtypes;

  constexpr bool serves(const DtypeInfo& dtype) const {
    if (dtypes == ObserverDtypes::casts) return dtype.is_plain_cast();
    if (dtypes == ObserverDtypes::blocks) return !dtype.is_integer;
    return dtypes == ObserverDtypes::any || dtype.is_integer;
  }
  /// A scale depends on its own elements alone, and on all of them at once.
  constexpr bool is_per_scale() const {
    return finds_range() || method == ObserverMethod::slice_mse || method == ObserverMethod::half_quadratic;
  }
  /// Smallest and largest value say it all.
  constexpr bool finds_range() const {
    return method == ObserverMethod::min_max || method == ObserverMethod::block_max;
  }
  /// Whether AMD Quark has an observer of this name.
  constexpr bool is_of_quark() const {
    return id <= ObserverId::PlaceholderObserver && id != ObserverId::PerTensorMSELastBinsObserver &&
           id != ObserverId::PerChannelLSQObserver && id != ObserverId::TQTKLJObserver;
  }
  /// Scales are powers of two whatever scale_type says, and zero points of symmetric unsigned dtypes lie in the middle
  /// of the codes, where other observers have 0.
  constexpr bool gives_powers_of_two() const {
    return method == ObserverMethod::pow2_min_max || method == ObserverMethod::pow2_min_mse;
  }
};

inline constexpr std::array kObservers = {
#define WASMQUANT_OBSERVER(id, qscheme, method, dtypes) \
  ObserverInfo{ObserverId::id, #id, QScheme::qscheme, ObserverMethod::method, ObserverDtypes::dtypes},
#include "observers/observers.def"
#undef WASMQUANT_OBSERVER
};

constexpr const ObserverInfo& info_of(ObserverId id) { return kObservers[static_cast<size_t>(id)]; }

}  // namespace wasmquant
