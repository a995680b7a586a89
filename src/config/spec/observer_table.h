// The table of observers, from tables/observers.def. A config names them, src/observers makes them.
#pragma once
#include <array>
#include <optional>
#include <string_view>

#include "config/spec/spec_enums.h"
#include "core/message.h"
#include "numeric/dtype.h"

namespace wasmquant {

/// One per row of observers.def.
enum class ObserverId : uint8_t {
#define WASMQUANT_OBSERVER(id, ...) id,
#include "tables/observers.def"
};

/// The rule that turns the observed data into a range.
enum class ObserverMethod : uint8_t {
#define WASMQUANT_METHOD(id, qscheme, method, ...) method,
#include "tables/observers.def"
};
/// The dtypes that an observer serves.
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
  /// Whether a scale depends only on its own elements, all at once.
  constexpr bool is_per_scale() const {
    return finds_range() || method == ObserverMethod::per_scale_mse || method == ObserverMethod::half_quadratic;
  }
  /// Whether minimum and maximum suffice.
  constexpr bool finds_range() const {
    return method == ObserverMethod::min_max || method == ObserverMethod::block_max;
  }
  /// Whether AMD Quark has an observer of this name.
  constexpr bool is_exported() const {
    return id <= ObserverId::PlaceholderObserver && id != ObserverId::PerTensorMSELastBinsObserver &&
           id != ObserverId::PerChannelLSQObserver && id != ObserverId::TQTKLJObserver;
  }
  /// Whether scales are always powers of two, and symmetric unsigned zero points the middle code, not 0.
  constexpr bool gives_powers_of_two() const {
    return method == ObserverMethod::pow2_min_max || method == ObserverMethod::pow2_min_mse;
  }
};

inline constexpr std::array kObservers = {
#define WASMQUANT_OBSERVER(id, qscheme, method, dtypes) \
  ObserverInfo{ObserverId::id, #id, QScheme::qscheme, ObserverMethod::method, ObserverDtypes::dtypes},
#include "tables/observers.def"
};

constexpr const ObserverInfo& info_of(ObserverId id) { return kObservers[static_cast<size_t>(id)]; }

/// By class name in upper or lower case, with or without `Observer`: a suffix, but for PerTensorHistogramObserverPro.
constexpr std::optional<ObserverId> observer_named(std::string_view name) {
  constexpr std::string_view kSuffix = "Observer";
  for (const ObserverInfo& row : kObservers) {
    const size_t at = row.name.find(kSuffix);
    const bool is_short = name.size() >= at && is_same_word(name.substr(0, at), row.name.substr(0, at)) &&
                          is_same_word(name.substr(at), row.name.substr(at + kSuffix.size()));
    if (is_same_word(name, row.name) || is_short) return row.id;
  }
  return std::nullopt;
}
/// The min-max observer of a qscheme, which is the first that serves it.
constexpr ObserverId min_max_observer_for(QScheme qscheme) {
  for (const ObserverInfo& row : kObservers)
    if (row.qscheme == qscheme) return row.id;
  return ObserverId::PlaceholderObserver;
}
/// What observes ranges of a dtype where a spec names no observer. Quark observes groups of floats as blocks, with the same result.
constexpr ObserverId default_observer_for(QScheme qscheme, bool is_integer) {
  return qscheme == QScheme::per_group && !is_integer ? ObserverId::PerBlockMXObserver : min_max_observer_for(qscheme);
}

}  // namespace wasmquant
