// aihwkit's MSE and cross-entropy estimators (aihwkit-brevitas 1.5). The first batch says how far ranges reach and
// whether all data is >= 0; it is that of the whole tensor for channels, too.
//   reach  max|x| + margin; with two ends to find, the larger magnitude of min - margin and max + margin
//   flat (symmetric, or nothing below zero): ranges (-r, r) or (0, r)      else: (-r + s, r + s)
//   grid      r = i * reach / N for i = 1..N, and s in steps of 2 r / (2^bits - 1), fewer than 2^bits / 4 of them to
//             either side, ends clamped to min - margin and max + margin; errors of all batches add up; the first of
//             the best
//   sections  Brent's method for r in [0.01 reach, reach], within it for s; the last batch alone
// Cross entropy is of the whole tensor, over its second dimension; with sections of channels of three and more
// dimensions, of each channel.
// The data is kept until finish: that of all batches (grid) or the last.
#pragma once
#include "observers/observer.h"

namespace wasmquant {

class RangeSearchObserver final : public Observer {
 public:
  RangeSearchObserver(const QuantizationSpec& spec, bool by_cross_entropy, const ObserverOptions& options)
      : Observer(spec, 1, !spec.is_dynamic,
                 options.search == SearchMethod::grid ? Data::all_batches : Data::last_batch),
        by_cross_entropy_(by_cross_entropy),
        options_(options) {}

 private:
  void choose(Observation& observation) const override;

  bool by_cross_entropy_;
  ObserverOptions options_;
};

}  // namespace wasmquant
