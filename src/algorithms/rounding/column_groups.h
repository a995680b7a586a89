// Which columns of a linear layer's weight [rows, columns] share a scale, for column-wise algorithms.
#pragma once
#include <cstdint>

#include "config/spec/spec.h"
#include "core/result.h"
#include "quantize/granularity.h"

namespace wasmquant {

/// Consecutive columns that share a scale: group_size for per_group, all of them for per_channel (a scale per row),
/// per_tensor and plain casts. Errors: those of granularity_of; spec-invalid for scales along another axis.
Result<size_t> columns_per_scale(const QuantizationSpec& spec, uint64_t rows, uint64_t columns);

/// `count` rows of `columns` values, one scale per row.
Granularity scale_per_row(uint64_t count, uint64_t columns) noexcept;

}  // namespace wasmquant
