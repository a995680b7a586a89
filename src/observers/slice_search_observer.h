// Observers of channels and groups that search for the scale of each by itself (slice_search.h). The last batch counts:
// they are made for weights. Scales whose elements lie together are settled as soon as these are here, so that no more
// than parts of scales are kept; otherwise, and where the scales of a tensor depend on each other (scale_format e4m3,
// signs by the data), the tensor is kept until finish.
#pragma once
#include "observers/observer.h"
#include "observers/slice_search.h"

namespace wasmquant {

class SliceSearchObserver final : public Observer {
 public:
  SliceSearchObserver(const QuantizationSpec& spec, ObserverMethod method, const ObserverOptions& options)
      : Observer(spec, 1, false, Data::last_batch),
        method_(method),
        options_(options),
        search_(spec, method, options) {}

  uint64_t settling_elements(const Granularity& granularity) const noexcept override;

 private:
  void settle(size_t index, std::span<const float> x, uint64_t at, std::vector<float>& summary) override;
  void choose(Observation& observation) const override;
  // Weights of elements, of the first `count` of a tensor: importance() repeated as its shape says. Empty without.
  std::vector<float> weights(size_t index, uint64_t count) const;

  ObserverMethod method_;
  ObserverOptions options_;
  SliceSearch search_;
  std::vector<float> row_;  // weights of one index of dimension 0
};

}  // namespace wasmquant
