// What compressed-tensors and Quark have in common: scales next to their weights, whose shape says what they cover.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "checkpoint/checkpoint_format.h"

namespace wasmquant {

/// The scheme that scales of this shape have: [out, groups], [out, 1], [out], [1] or []. `group_axis`: which axis of
/// the scale counts groups.
void set_scheme(QuantizationSpec& spec, const std::vector<uint64_t>& scale_shape, const WeightDescription& weight,
                size_t group_axis);

/// Whether LAYER.PART is a scale, zero point or the like, of a weight, of activations or of the key-value cache.
bool is_part_of_scaled_weight(std::string_view part) noexcept;

}  // namespace wasmquant
