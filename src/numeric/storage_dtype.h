// Storage dtypes: what the bytes of a tensor in a file are, as opposed to what a weight is quantized to (dtype.h).
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace wasmquant {

enum class StorageDtype : uint8_t {
#define WASMQUANT_STORAGE(id, bits, name) id,
#include "numeric/storage_dtypes.def"
#undef WASMQUANT_STORAGE
};

struct StorageDtypeInfo {
  StorageDtype dtype;
  std::string_view name;
  uint8_t bits;
};

inline constexpr std::array kStorageDtypes = {
#define WASMQUANT_STORAGE(id, bits, name) StorageDtypeInfo{StorageDtype::id, name, bits},
#include "numeric/storage_dtypes.def"
#undef WASMQUANT_STORAGE
};

constexpr const StorageDtypeInfo& info_of(StorageDtype dtype) { return kStorageDtypes[static_cast<size_t>(dtype)]; }

/// Exact, case-sensitive name; aliases seen in the wild ("E8M0", "FP4") are the reader's affair.
constexpr std::optional<StorageDtype> storage_dtype_named(std::string_view name) {
  for (const StorageDtypeInfo& row : kStorageDtypes)
    if (row.name == name) return row.dtype;
  return std::nullopt;
}

/// The dtypes whose values the kernels can widen to float32 and quantize.
constexpr bool is_quantizable(StorageDtype dtype) {
  return dtype == StorageDtype::F32 || dtype == StorageDtype::F16 || dtype == StorageDtype::BF16;
}

}  // namespace wasmquant
