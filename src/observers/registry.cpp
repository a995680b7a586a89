#include "observers/registry.h"

namespace wasmquant {

#define WASMQUANT_METHOD(id, qscheme, method, make, dtypes) ObserverFactory make;
#include "tables/observers.def"

namespace {

// By method.
constexpr ObserverFactory* kFactories[] = {
#define WASMQUANT_METHOD(id, qscheme, method, make, dtypes) make,
#include "tables/observers.def"
};

}  // namespace

std::unique_ptr<Observer> make_observer(const QuantizationSpec& spec, const ObserverOptions& options) {
  if (spec.scale_refit) return make_per_scale_search_observer(spec, options);
  return kFactories[static_cast<size_t>(info_of(spec.observer).method)](spec, options);
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
