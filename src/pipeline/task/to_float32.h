// Stored elements to float32, of every dtype that is_quantizable().
#pragma once
#include <cstdint>

#include "numeric/storage_dtype.h"

namespace wasmquant {

/// x: `count` floats from as many elements; `count` makes whole blocks, of F4 whole bytes (first element in the low
/// nibble). Exact; NaN stays NaN.
void widen(StorageDtype dtype, const uint8_t* bytes, uint64_t count, float* x) noexcept;

}  // namespace wasmquant
