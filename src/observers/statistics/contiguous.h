// Observes scales that each cover `length` consecutive elements in one pass: the fast path for per_group along the last
// axis and per_channel on axis 0, where a tile has all the data of a scale and no state is needed.
#pragma once
#include <cstdint>
#include <span>

#include "config/spec/spec.h"
#include "quantize/qparams.h"

namespace wasmquant {

/// qparams[i] from x[i * length, (i + 1) * length); x.size() = qparams.size() * length. The same numbers as
/// RangeObserver. Returns false if any element is not finite (those are skipped).
bool observe_contiguous(std::span<const float> x, uint64_t length, const QuantizationSpec& spec,
                        std::span<QParams> qparams) noexcept;

}  // namespace wasmquant
