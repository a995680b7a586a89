// Observers by name, and their construction.
#pragma once
#include <memory>
#include <optional>
#include <string_view>

#include "observers/observer.h"

namespace wasmquant {

/// By class name, with or without the suffix `Observer`.
std::optional<ObserverId> observer_named(std::string_view name) noexcept;
/// The min-max observer of a qscheme; nullopt for per_block.
std::optional<ObserverId> min_max_observer_for(QScheme qscheme) noexcept;

/// The observer that spec.observer names. The config ensures that qscheme and dtype fit.
std::unique_ptr<Observer> make_observer(const QuantizationSpec& spec, const ObserverOptions& options);
/// With the options of the spec.
inline std::unique_ptr<Observer> make_observer(const QuantizationSpec& spec) {
  return make_observer(spec, spec.observer_options);
}

/// All passes over one whole tensor. Errors: those of Observer.
Result<Observation> observe_tensor(const QuantizationSpec& spec, std::span<const float> x,
                                   const std::vector<uint64_t>& shape);

}  // namespace wasmquant
