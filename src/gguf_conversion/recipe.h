// The type of each tensor of a GGUF model: llama.cpp's mixtures, tensor by tensor (llama-quant.cpp). Tensors that
// suffer most from few bits (attention values, the feed-forward down projection, the head) get more, some of them only
// in the first and last layers; rows that are not a whole number of blocks get a type with smaller blocks.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/list.h"
#include "formats/gguf/gguf_metadata.h"
#include "numeric/ggml_type.h"

namespace wasmquant::conversion {

/// One per row of tables/recipes.def.
enum class Recipe : uint8_t {
#define WASMQUANT_RECIPE(name, file_type, type, pure, use) name,
#include "tables/recipes.def"
#undef WASMQUANT_RECIPE
};

/// One row of tables/recipes.def.
struct RecipeInfo {
  std::string_view name;
  uint8_t file_type;  // general.file_type
  GgmlType type;
  bool pure;
};
const RecipeInfo& info_of(Recipe recipe) noexcept;
/// Exact lower-case name; q3_k, q4_k and q5_k mean their _m.
std::optional<Recipe> recipe_named(std::string_view name) noexcept;

/// The facts about a model that the rules use in addition to its tensors.
struct ModelFacts {
  std::string_view architecture;  // view of the metadata
  uint32_t layers = 0, heads = 0, key_value_heads = 0, experts = 0;
};
/// From general.architecture and "<architecture>.block_count", ".attention.head_count", ".attention.head_count_kv",
/// ".expert_count". Missing values are 0; key_value_heads then equals heads.
ModelFacts facts_of(const gguf::Metadata& metadata);

/// The user's choices apart from the recipe.
struct RecipeOptions {
  bool pure = false;                       // the recipe's type everywhere
  bool has_importance = false;             // an importance matrix is given
  bool keeps_output = false;               // output.weight is not quantized
  std::optional<GgmlType> output_type;     // of output.weight, overriding the recipe
  std::optional<GgmlType> embedding_type;  // of token_embd.weight
};

/// llama-quantize rejects this recipe without an importance matrix: the quality would be poor.
bool needs_importance(Recipe recipe) noexcept;

/// A tensor as the rules see it.
struct RecipeTensor {
  std::string_view name;            // in GGUF
  std::span<const uint64_t> shape;  // C order: rows along the last dimension
  std::optional<GgmlType> chosen;   // by the user for this tensor: overrides rules, but not shape checks
};

/// Why a tensor gets its type.
enum class TypeReason : uint8_t {
  kept,      // the tensor stays in the type it has: 1-D, norm, router, …
  recipe,    // the recipe's main type
  rule,      // a rule of the mixture
  chosen,    // the user's
  fallback,  // rows are not a whole number of blocks of the `wanted` type
};
/// The type of a tensor, and why.
struct TypeChoice {
  GgmlType type = GgmlType::f32;  // meaningless when kept
  TypeReason reason = TypeReason::kept;
  GgmlType wanted = GgmlType::f32;  // before a fallback
};

/// One choice per tensor, in the given order. The rules count tensors in llama.cpp's order regardless of the order of
/// `tensors`, so all tensors of a model, including split files, must be given at once.
List<TypeChoice> choose_types(Recipe recipe, const ModelFacts& facts, const RecipeOptions& options,
                              std::span<const RecipeTensor> tensors);

/// The order in which llama-quantize writes tensors: those outside layers by name, then layer by layer, by name.
List<uint32_t> quantize_order(std::span<const RecipeTensor> tensors);

/// Sets general.file_type and general.quantization_version and drops split keys, as requantizing does.
void describe_recipe(Recipe recipe, gguf::Metadata& metadata);

}  // namespace wasmquant::conversion
