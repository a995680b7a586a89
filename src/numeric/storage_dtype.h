// Storage dtypes: what the bytes of a tensor in a file are, as opposed to what a weight is quantized to (dtype.h):
// element dtypes (storage_dtypes.def) and the block types of GGUF files (ggml_types.def).
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "numeric/dtype.h"
#include "numeric/ggml_type.h"

namespace wasmquant {

/// One per row of storage_dtypes.def and ggml_types.def.
enum class StorageDtype : uint8_t {
#define WASMQUANT_STORAGE(id, bits, name) id,
#include "numeric/storage_dtypes.def"
#undef WASMQUANT_STORAGE
#define WASMQUANT_GGML(id, file_id, block, block_bytes, ability) ggml_##id,
#include "numeric/ggml_types.def"
#undef WASMQUANT_GGML
};

/// The facts of one storage dtype.
struct StorageDtypeInfo {
  StorageDtype dtype;
  std::string_view name;
  uint8_t bits;        // of an element; 0 for blocks
  uint16_t block = 1;  // elements that are stored together
  uint16_t block_bytes = 0;

  constexpr bool is_ggml() const { return bits == 0; }
  /// Bytes of `elements`, a multiple of `block` (below 8 bits: enough to fill whole bytes). The product must fit.
  constexpr uint64_t bytes_of(uint64_t elements) const {
    return is_ggml() ? elements / block * block_bytes : elements * bits / 8;
  }
};

inline constexpr std::array kStorageDtypes = {
#define WASMQUANT_STORAGE(id, bits, name) StorageDtypeInfo{StorageDtype::id, name, bits},
#include "numeric/storage_dtypes.def"
#undef WASMQUANT_STORAGE
#define WASMQUANT_GGML(id, file_id, block, block_bytes, ability) \
  StorageDtypeInfo{StorageDtype::ggml_##id, #id, 0, block, block_bytes},
#include "numeric/ggml_types.def"
#undef WASMQUANT_GGML
};

constexpr const StorageDtypeInfo& info_of(StorageDtype dtype) { return kStorageDtypes[static_cast<size_t>(dtype)]; }

/// By exact, case-sensitive safetensors name; the reader resolves aliases seen in the wild ("E8M0", "FP4").
constexpr std::optional<StorageDtype> storage_dtype_named(std::string_view name) {
  for (const StorageDtypeInfo& row : kStorageDtypes)
    if (!row.is_ggml() && row.name == name) return row.dtype;
  return std::nullopt;
}

/// The dtype of a GGUF tensor. Plain types map to the dtypes of other files with the same bytes.
constexpr StorageDtype storage_dtype_of(GgmlType type) {
  switch (type) {
    case GgmlType::f32:
      return StorageDtype::F32;
    case GgmlType::f16:
      return StorageDtype::F16;
    case GgmlType::bf16:
      return StorageDtype::BF16;
    default:
      return static_cast<StorageDtype>(static_cast<size_t>(StorageDtype::ggml_f32) + static_cast<size_t>(type));
  }
}
/// The reverse; nullopt for dtypes that GGUF lacks.
constexpr std::optional<GgmlType> ggml_type_of(StorageDtype dtype) {
  if (dtype == StorageDtype::F32) return GgmlType::f32;
  if (dtype == StorageDtype::F16) return GgmlType::f16;
  if (dtype == StorageDtype::BF16) return GgmlType::bf16;
  if (dtype < StorageDtype::ggml_f32) return std::nullopt;
  return static_cast<GgmlType>(static_cast<size_t>(dtype) - static_cast<size_t>(StorageDtype::ggml_f32));
}

/// The dtype whose codes the 8- and 4-bit elements are, with scale 1. F8_E8M0 has none: it stores scales.
constexpr std::optional<Dtype> small_float_of(StorageDtype dtype) {
  switch (dtype) {
    case StorageDtype::F8_E4M3:
      return Dtype::fp8_e4m3;
    case StorageDtype::F8_E5M2:
      return Dtype::fp8_e5m2;
    case StorageDtype::F8_E4M3FNUZ:
      return Dtype::fp8_e4m3fnuz;
    case StorageDtype::F8_E5M2FNUZ:
      return Dtype::fp8_e5m2fnuz;
    case StorageDtype::F4:
      return Dtype::fp4;
    default:
      return std::nullopt;
  }
}

/// The dtypes whose values can be read as float32: exactly, but for F64, which is rounded.
constexpr bool is_quantizable(StorageDtype dtype) {
  if (small_float_of(dtype) || dtype == StorageDtype::F64) return true;
  const auto type = ggml_type_of(dtype);
  return type && info_of(*type).can_dequantize();
}
/// Whether a tensor can be widened row by row: two F4 elements share a byte.
constexpr bool is_quantizable(StorageDtype dtype, std::span<const uint64_t> shape) {
  return is_quantizable(dtype) && (info_of(dtype).bits != 4 || (!shape.empty() && shape.back() % 2 == 0));
}

}  // namespace wasmquant
