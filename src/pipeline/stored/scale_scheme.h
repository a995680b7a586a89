// Shared by compressed-tensors and Quark: scales stored next to their weights; their shape tells what they cover.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "checkpoint/checkpoint_format.h"

namespace wasmquant {

/// Sets the scheme for a scale of shape [out, groups], [out, 1], [out], [1] or []. `group_axis`: its group axis.
void set_scheme(QuantizationSpec& spec, const std::vector<uint64_t>& scale_shape, const WeightDescription& weight,
                size_t group_axis);

/// Whether LAYER.PART is a scale, zero point or similar, of a weight, of activations or of the key-value cache.
bool is_part_of_scaled_weight(std::string_view part) noexcept;

}  // namespace wasmquant
