// llama-quantize's choice of types, around its mixtures: the user's types before, blocks that fit the rows after.
// Source: llama.cpp, src/llama-quant.cpp (llama 0.7).
#include "gguf_conversion/recipe.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "core/message.h"
#include "core/order.h"
#include "gguf_conversion/recipe_mixture.h"

namespace wasmquant::conversion {
namespace {

constexpr RecipeInfo kRecipes[] = {
#define WASMQUANT_RECIPE(name, file_type, type, pure, use) {#name, file_type, GgmlType::type, pure},
#include "tables/recipes.def"
#undef WASMQUANT_RECIPE
};

constexpr uint32_t kQuantizationVersion = 2;  // of the block formats: ggml's GGML_QNT_VERSION

class Chooser {
 public:
  Chooser(Recipe recipe, const ModelFacts& facts, const RecipeOptions& options, std::span<const RecipeTensor> tensors)
      : recipe_(recipe),
        options_(options),
        is_pure_(options.pure || info_of(recipe).pure),
        mixture_(recipe, facts, options, tensors) {}

  TypeChoice choose(const RecipeTensor& tensor) {
    TypeChoice choice;
    const TensorCategory category = category_of(tensor.name);
    const bool is_output = category == TensorCategory::output;
    if (!is_quantized(tensor.name, tensor.shape) || (is_output && options_.keeps_output)) return choice;
    const GgmlType main = info_of(recipe_).type;
    choice.type = main;
    choice.reason = TypeReason::recipe;
    if (const auto chosen = chosen_type(tensor, category)) {
      choice.type = *chosen;
      choice.reason = TypeReason::chosen;
    } else if (!is_pure_ && info_of(main).block > 1) {
      choice.type = mixture_.type_of(tensor, category, main);
      if (choice.type != main) choice.reason = TypeReason::rule;
    }
    choice.wanted = choice.type;
    const uint64_t columns = tensor.shape.back();
    if (columns % info_of(choice.type).block != 0) {
      choice.type = smaller_block(choice.type);
      if (columns % info_of(choice.type).block != 0) choice.type = GgmlType::f16;
      choice.reason = TypeReason::fallback;
    }
    return choice;
  }

 private:
  // Replaces a type with 256 elements per block by one with 32.
  static GgmlType smaller_block(GgmlType type) noexcept {
    switch (type) {
      case GgmlType::q2_k:
      case GgmlType::q3_k:
      case GgmlType::tq1_0:
      case GgmlType::tq2_0:
      case GgmlType::q2_0:
        return GgmlType::q4_0;
      case GgmlType::q4_k:
        return GgmlType::q5_0;
      case GgmlType::q5_k:
        return GgmlType::q5_1;
      case GgmlType::q6_k:
        return GgmlType::q8_0;
      case GgmlType::iq1_s:
      case GgmlType::iq1_m:
      case GgmlType::iq2_xxs:
      case GgmlType::iq2_xs:
      case GgmlType::iq2_s:
      case GgmlType::iq3_xxs:
      case GgmlType::iq3_s:
      case GgmlType::iq4_xs:
        return GgmlType::iq4_nl;
      default:
        return GgmlType::f16;
    }
  }
  std::optional<GgmlType> chosen_type(const RecipeTensor& tensor, TensorCategory category) const {
    if (options_.embedding_type && category == TensorCategory::token_embedding) return options_.embedding_type;
    if (options_.output_type && category == TensorCategory::output) return options_.output_type;
    return tensor.chosen;
  }

  const Recipe recipe_;
  const RecipeOptions& options_;
  const bool is_pure_;
  Mixture mixture_;
};

}  // namespace

const RecipeInfo& info_of(Recipe recipe) noexcept { return kRecipes[static_cast<size_t>(recipe)]; }

bool needs_importance(Recipe recipe) noexcept {
  const GgmlType type = info_of(recipe).type;
  return is_for_importance(type) || recipe == Recipe::q2_k_s || recipe == Recipe::iq3_xs;
}

std::optional<Recipe> recipe_named(std::string_view name) noexcept {
  for (size_t i = 0; i < std::size(kRecipes); ++i)
    if (kRecipes[i].name == name) return static_cast<Recipe>(i);
  if (name == "q3_k") return Recipe::q3_k_m;
  if (name == "q4_k") return Recipe::q4_k_m;
  if (name == "q5_k") return Recipe::q5_k_m;
  return std::nullopt;
}

ModelFacts facts_of(const gguf::Metadata& metadata) {
  ModelFacts facts;
  facts.architecture = metadata.find_text("general.architecture").value_or(std::string_view());
  const auto number = [&](std::string_view key) {
    const uint64_t value = metadata.find_count(text_of("{}.{}", facts.architecture, key)).value_or(0);
    return static_cast<uint32_t>(std::min<uint64_t>(value, ~uint32_t{0}));
  };
  facts.layers = number("block_count");
  facts.heads = number("attention.head_count");
  facts.key_value_heads = number("attention.head_count_kv");
  if (facts.key_value_heads == 0) facts.key_value_heads = facts.heads;
  facts.experts = number("expert_count");
  return facts;
}

List<uint32_t> quantize_order(std::span<const RecipeTensor> tensors) {
  return sorted_order(tensors.size(), [&](uint32_t a, uint32_t b) {
    const int64_t layer_a = layer_of(tensors[a].name), layer_b = layer_of(tensors[b].name);
    return layer_a != layer_b ? layer_a < layer_b : tensors[a].name < tensors[b].name;
  });
}

List<TypeChoice> choose_types(Recipe recipe, const ModelFacts& facts, const RecipeOptions& options,
                              std::span<const RecipeTensor> tensors) {
  Chooser chooser(recipe, facts, options, tensors);
  List<TypeChoice> choices(tensors.size());
  for (const uint32_t i : quantize_order(tensors)) choices[i] = chooser.choose(tensors[i]);
  return choices;
}

void describe_recipe(Recipe recipe, gguf::Metadata& metadata) {
  metadata.set_u32("general.quantization_version", kQuantizationVersion);
  metadata.set_u32("general.file_type", info_of(recipe).file_type);
}

}  // namespace wasmquant::conversion
