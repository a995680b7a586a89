// Shared by compressed-tensors and Quark: scales stored next to their weights; their shape tells what they cover.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "checkpoint/checkpoint_format.h"
#include "pipeline/stored/source_format.h"

namespace wasmquant {

/// How a tool shapes scales: the axis of groups, and those of channels, [out] or [out, 1].
struct ScaleAxes {
  size_t group_axis = 1, channel_axes = 2;
};

/// Sets the scheme for a scale of shape [out, groups], [out, 1], [out], [1] or []; with group axis 0, [groups, out].
void set_scheme(QuantizationSpec& spec, const std::vector<uint64_t>& scale_shape, const WeightDescription& weight,
                ScaleAxes axes);

/// Codes are LAYER.weight with a scale, or of a dtype that no weight has. Parts are scales, zero points and the like,
/// of a weight, of activations or of the key-value cache.
StoredRole use_in_scaled_weight(const ModelIndex& model, const ModelTensor& tensor) noexcept;

}  // namespace wasmquant
