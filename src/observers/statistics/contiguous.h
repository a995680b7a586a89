// Scales that each cover `length` consecutive elements, observed in one go: the fast way for per_group along the last
// axis and per_channel of axis 0, where a tile holds all a scale needs and no state outlives it.
#pragma once
#include <cstdint>
#include <span>

#include "config/spec/spec.h"
#include "quantize/qparams.h"

namespace wasmquant {

/// qparams[i] from x[i * length, (i + 1) * length); x.size() = qparams.size() * length. The same numbers as
/// RangeObserver. Returns false if any element is not finite (those are left out of the ranges).
bool observe_contiguous(std::span<const float> x, uint64_t length, const QuantizationSpec& spec,
                        std::span<QParams> qparams) noexcept;

}  // namespace wasmquant
