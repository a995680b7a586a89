// NumPy's .npy files, sans-I/O: one array each.
// Layout: 1. 0x93 "NUMPY"  2. version, 2 bytes  3. header length: u16, from version 2 on u32, little-endian
//         4. a Python dict literal of 'descr', 'fortran_order' and 'shape'  5. values to the end of the file.
// Checks: those of numpy.lib.format; the header is parsed, never evaluated.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

#include "core/result.h"
#include "formats/tensor_index.h"

namespace wasmquant::npy {

/// NumPy's own limit for headers, in characters.
inline constexpr uint64_t kMaxHeaderBytes = 10'000;

bool looks_like_npy(std::span<const uint8_t> prefix) noexcept;

/// Bytes from the start that read_tensor() needs, judging by `prefix` of a file of `file_bytes`; 0: the prefix is
/// enough. Errors: file-truncated, file-too-large, file-invalid.
Result<uint64_t> need(std::span<const uint8_t> prefix, uint64_t file_bytes);

/// dtype, shape and place of the array, in file offsets; the name stays empty. Errors: those of `need`; file-invalid;
/// dtype-unsupported (objects, records, strings, big-endian, Fortran order), with advice on what to save instead.
Result<StoredTensor> read_tensor(std::span<const uint8_t> prefix, uint64_t file_bytes);

}  // namespace wasmquant::npy
