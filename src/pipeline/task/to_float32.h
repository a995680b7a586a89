// Stored elements of every is_quantizable() dtype to float32.
#pragma once
#include <cstdint>

#include "numeric/storage_dtype.h"

namespace wasmquant {

/// x: `count` floats; `count` must make whole blocks, for F4 whole bytes (low nibble first). Exact, but F64 is
/// rounded to nearest; NaN stays NaN.
void to_float32(StorageDtype dtype, const uint8_t* bytes, uint64_t count, float* x) noexcept;

}  // namespace wasmquant
