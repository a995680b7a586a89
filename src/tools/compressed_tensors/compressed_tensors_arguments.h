// A spec as compressed-tensors' QuantizationArgs: the only place that spells them, for files and for converted configs.
#pragma once
#include "config/dialects/convert.h"
#include "config/spec/spec.h"
#include "core/json.h"

namespace wasmquant::config {

/// Whether the grid is stored with a zero point: asymmetric integers, and unsigned ones, whose codes are shifted by
/// 2^(bits - 1) into the signed range.
bool has_stored_zero_point(const QuantizationSpec& spec) noexcept;

/// The arguments of weights (strategy channel, group, block or tensor), or of activations (token for a scale per row).
/// A group that is the whole row (group_size -1) is a channel, or a token: the library's groups have a positive size.
/// Source: compressed-tensors' quantization/quant_args.py.
json::Value compressed_tensors_arguments(const QuantizationSpec& spec, bool is_activation);

/// The whole block of a converted config.
json::Value write_compressed_tensors(DialectConversion& conversion);

}  // namespace wasmquant::config
