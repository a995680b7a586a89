// Tensor types of GGUF files. Everything about a type is derived from its row in ggml_types.def.
#pragma once
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

namespace wasmquant {

/// One per row of ggml_types.def.
enum class GgmlType : uint8_t {
#define WASMQUANT_GGML(id, file_id, block, block_bytes, ability) id,
#include "numeric/ggml_types.def"
#undef WASMQUANT_GGML
};

/// What is supported (ggml_types.def).
enum class GgmlAbility : uint8_t { opaque, both };

/// The facts of one type.
struct GgmlTypeInfo {
  GgmlType type;
  std::string_view name;
  uint8_t file_id;
  uint16_t block;        // elements
  uint16_t block_bytes;  // bytes per block
  GgmlAbility ability;

  constexpr bool can_quantize() const { return ability == GgmlAbility::both; }
  constexpr bool can_dequantize() const { return ability != GgmlAbility::opaque; }
  /// Bytes of `elements`, a multiple of `block`. The product must fit; readers check declared shapes first.
  constexpr uint64_t bytes_of(uint64_t elements) const { return elements / block * block_bytes; }
};

inline constexpr std::array kGgmlTypes = {
#define WASMQUANT_GGML(id, file_id, block, block_bytes, ability) \
  GgmlTypeInfo{GgmlType::id, #id, file_id, block, block_bytes, GgmlAbility::ability},
#include "numeric/ggml_types.def"
#undef WASMQUANT_GGML
};

constexpr const GgmlTypeInfo& info_of(GgmlType type) { return kGgmlTypes[static_cast<size_t>(type)]; }

/// Of so few bits that llama-quantize asks for an importance matrix.
constexpr bool is_for_importance(GgmlType type) {
  return type == GgmlType::iq3_xxs || type == GgmlType::iq2_s || type == GgmlType::iq2_xs ||
         type == GgmlType::iq2_xxs || type == GgmlType::iq1_s || type == GgmlType::iq1_m;
}

/// Magnitudes above it get the largest scale, and blocks no mark of the loss: NVFP4 has e4m3 scales, up to 448, of elements
/// up to 6. Infinity: types whose float16 scale becomes infinite then.
constexpr float largest_value(GgmlType type) {
  return type == GgmlType::nvfp4 ? 448.0f * 6 : std::numeric_limits<float>::infinity();
}

/// The type with this number in files; nullopt for unknown or withdrawn numbers.
constexpr std::optional<GgmlType> ggml_type_of(uint32_t file_id) {
  for (const GgmlTypeInfo& row : kGgmlTypes)
    if (row.file_id == file_id) return row.type;
  return std::nullopt;
}

/// Exact lower-case name ("q4_k").
constexpr std::optional<GgmlType> ggml_type_named(std::string_view name) {
  for (const GgmlTypeInfo& row : kGgmlTypes)
    if (row.name == name) return row.type;
  return std::nullopt;
}

}  // namespace wasmquant
