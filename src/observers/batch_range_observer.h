// aihwkit's estimators that know no search (aihwkit-brevitas 1.5).
//   last_range    that of the last batch; with tail_percent p, per_tensor (percentile p, maximum), otherwise
//                 (percentile p, percentile 100 - p)
//   moving_range  first batch: its own; then (1 - momentum) * new + momentum * old, in float32
#pragma once
#include "observers/observer.h"

namespace wasmquant {

class BatchRangeObserver final : public Observer {
 public:
  BatchRangeObserver(const QuantizationSpec& spec, bool is_moving, const ObserverOptions& options)
      : Observer(spec, 1, is_moving && !spec.is_dynamic,
                 !is_moving && options.tail_percent != 0 ? Data::last_batch : Data::none),
        is_moving_(is_moving),
        options_(options) {}

 private:
  void choose(Observation& observation) const override;
  void move(Observation& observation) const noexcept;
  void cut_tails(Observation& observation) const;

  bool is_moving_;
  ObserverOptions options_;
};

}  // namespace wasmquant
