// How mlx-lm arranges the tensors of a family: the rows of families/table/rearranged.def.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "families/model_family.h"

namespace wasmquant::mlx {

// Traits of families.
inline constexpr uint16_t kNorms = 1;          // 1 is added to norms
inline constexpr uint16_t kTransposes = 2;     // matrices of Conv1D layers are transposed
inline constexpr uint16_t kLatentHeads = 4;    // kv_b_proj is cut into embed_q and unembed_out
inline constexpr uint16_t kInputMajor = 8;     // the class has fused experts as [inputs, outputs]
inline constexpr uint16_t kAlternates = 16;    // rows of gate and up take turns in the class
inline constexpr uint16_t kScalars = 32;       // vectors of one element have no axis
inline constexpr uint16_t kExpertRows = 64;    // matrices of single experts are the rows of one in the class
inline constexpr uint16_t kMultipliers = 128;  // multipliers of config.json are multiplied into the weights
inline constexpr uint16_t kMultimodal = 256;   // the class has towers, which mlx-lm leaves out
inline constexpr uint16_t kTowers = 512;       // ... and mlx-vlm arranges only in their convolutions

/// A row.
struct Family {
  std::string_view types;
  uint16_t traits;
  std::string_view experts, fused, names;
};

/// The row of the family with what its language model adds; nullopt for unknown families.
std::optional<Family> row_of(const families::ModelFamily& family);
/// The class that transformers has for a language model without its towers; empty where it has none.
std::string_view text_class_of(std::string_view text_model_type) noexcept;
/// What of the arrangement cannot be undone; empty if all can.
std::string_view refused_part_of(std::string_view model_type) noexcept;

/// Why the tensors of the class of transformers are not what mlx-lm loads quantized; empty if they are.
std::string write_limit(const families::ModelFamily& family);

}  // namespace wasmquant::mlx
