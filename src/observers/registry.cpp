// The observers by name, from observers.def.
#include <array>

#include "observers/observer.h"

namespace wasmquant {
namespace {

constexpr std::array kObservers = {
#define WASMQUANT_OBSERVER(id, qscheme) ObserverInfo{ObserverId::id, #id, QScheme::qscheme},
#include "observers/observers.def"
#undef WASMQUANT_OBSERVER
};

constexpr std::string_view kSuffix = "Observer";

}  // namespace

std::span<const ObserverInfo> observers() noexcept { return kObservers; }

const ObserverInfo& info_of(ObserverId id) noexcept { return kObservers[static_cast<size_t>(id)]; }

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

}  // namespace wasmquant
