// Makes observers, and runs one over a tensor.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "observers/observer.h"

namespace wasmquant {

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
