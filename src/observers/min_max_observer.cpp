// The whole range, by qparams_of; and the placeholder of plain casts, which have no scale (spec 4.1 to 4.3).
#include "observers/observer.h"

namespace wasmquant {

class MinMaxObserver final : public Observer {
 public:
  MinMaxObserver(const QuantizationSpec& spec, bool is_placeholder)
      : Observer(spec, 1, false), is_placeholder_(is_placeholder) {}

 private:
  void choose(Observation& observation) const override {
    observation.qparams = is_placeholder_ ? std::vector<QParams>(observation.min.size(), QParams{1.0f, 0.0f})
                                          : range(batch_count() - 1).finish();
  }

  bool is_placeholder_;
};

std::unique_ptr<Observer> make_min_max_observer(const QuantizationSpec& spec, const ObserverOptions&) {
  return std::make_unique<MinMaxObserver>(spec, info_of(spec.observer).method == ObserverMethod::placeholder);
}

}  // namespace wasmquant
