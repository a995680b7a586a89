#include "observers/contiguous.h"

namespace wasmquant {

bool observe_contiguous(std::span<const float> x, uint64_t length, const QuantizationSpec& spec,
                        std::span<QParams> qparams) noexcept {
  bool finite = true;
  // The symmetric formula needs the largest magnitude alone, which is cheaper than both ends.
  const bool needs_only_magnitude = spec.symmetric || !info_of(spec.dtype).is_integer;
  for (size_t i = 0; i < qparams.size(); ++i) {
    const std::span<const float> run = x.subspan(i * length, length);
    if (needs_only_magnitude) {
      const kernels::AbsMax absmax = kernels::reduce_absmax(run);
      finite &= absmax.all_finite;
      // A run without a single finite value has no range, as in RangeObserver; a run of zeros has one.
      const bool has_range = absmax.all_finite || absmax.value > 0 || kernels::reduce_extent(run).min <= 0;
      qparams[i] = has_range ? qparams_of(-absmax.value, absmax.value, spec) : qparams_of(1.0f, -1.0f, spec);
    } else {
      const kernels::Extent extent = kernels::reduce_extent(run);
      finite &= extent.all_finite;
      qparams[i] = qparams_of(extent.min, extent.max, spec);
    }
  }
  return finite;
}

}  // namespace wasmquant
