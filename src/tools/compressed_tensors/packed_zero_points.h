// Zero points in words (pack-quantized), and how transformers loads them. Its plain loading makes room for zero points
// that are not packed, and so refuses its own compressor's files, too. With dequantize=True it reads them, and
// decompresses every layer that is no expert by one scheme, the first of the config.
// Source: transformers 5.24, quantizers/quantizer_compressed_tensors.py and integrations/compressed_tensors.py
// (get_dense_scheme), compressed-tensors 0.20.
#pragma once
#include <optional>
#include <string_view>

#include "checkpoint/checkpoint_format.h"

namespace wasmquant {

/// Whether a weight with this spec has its zero points in words. `is_unpacked`: WeightDescription::is_unpacked.
bool has_packed_zero_points(const QuantizationSpec& spec, bool is_unpacked);
/// The argument of from_pretrained that loads these layers; empty if none has packed zero points.
std::string_view option_for_zero_points(const List<LayerPlan>& layers);
/// Why transformers loads these layers in no way: packed zero points, and layers of another scheme.
std::optional<LoaderLimit> zero_point_limit(const List<LayerPlan>& layers);

}  // namespace wasmquant
