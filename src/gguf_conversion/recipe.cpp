// llama-quantize's choice of types, without the 1- to 3-bit IQ types, which are not written here. The order of the
// checks matters and is llama.cpp's. Source: llama.cpp, src/llama-quant.cpp (llama 0.7).
#include "gguf_conversion/recipe.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "core/message.h"
#include "core/order.h"
#include "gguf_conversion/tensor_category.h"

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
      : recipe_(recipe), facts_(facts), options_(options), is_pure_(options.pure || info_of(recipe).pure) {
    for (const RecipeTensor& tensor : tensors) {
      const TensorCategory category = category_of(tensor.name);
      if (is_value(category)) ++values_;
      if (category == TensorCategory::output) is_tied_ = false;
    }
  }

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
      choice.type = by_rules(tensor, category, main);
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
  template <class... Recipes>
  bool is(Recipes... recipes) const noexcept {
    return ((recipe_ == recipes) || ...);
  }
  // The first and last eighth of the layers, and every third between.
  static bool deserves_more_bits(uint32_t layer, uint32_t layers) noexcept {
    return layer < layers / 8 || layer >= uint64_t{7} * layers / 8 || (layer - layers / 8) % 3 == 2;
  }
  // Replaces a type with 256 elements per block by one with 32.
  static GgmlType smaller_block(GgmlType type) noexcept {
    switch (type) {
      case GgmlType::q2_k:
      case GgmlType::q3_k:
      case GgmlType::tq1_0:
      case GgmlType::tq2_0:
        return GgmlType::q4_0;
      case GgmlType::q4_k:
        return GgmlType::q5_0;
      case GgmlType::q5_k:
        return GgmlType::q5_1;
      case GgmlType::q6_k:
        return GgmlType::q8_0;
      case GgmlType::iq4_xs:
        return GgmlType::iq4_nl;
      default:
        return GgmlType::f16;
    }
  }
  uint32_t group_size() const noexcept {  // query heads to a key/value head
    return facts_.key_value_heads == 0 ? 0 : facts_.heads / facts_.key_value_heads;
  }
  bool is_falcon() const noexcept { return facts_.architecture == "falcon"; }
  bool is_70b() const noexcept {
    return facts_.layers == 80 && ((facts_.architecture == "llama" && facts_.heads != facts_.key_value_heads) ||
                                   facts_.architecture == "qwen2" || facts_.architecture == "deci");
  }

  std::optional<GgmlType> chosen_type(const RecipeTensor& tensor, TensorCategory category) const {
    if (options_.embedding_type && category == TensorCategory::token_embedding) return options_.embedding_type;
    if (options_.output_type && category == TensorCategory::output) return options_.output_type;
    return tensor.chosen;
  }

  GgmlType by_rules(const RecipeTensor& tensor, TensorCategory category, GgmlType type) {
    if (category == TensorCategory::output || (is_tied_ && category == TensorCategory::token_embedding))
      return head(tensor, type);
    if (is(Recipe::mxfp4_moe)) {  // expert tensors are [experts, rows, columns]
      const bool has_experts = tensor.shape.size() > 2 && tensor.shape[tensor.shape.size() - 3] > 1;
      return has_experts ? GgmlType::mxfp4 : GgmlType::q8_0;
    }
    if (is_value(category)) return value(type);
    switch (category) {
      case TensorCategory::token_embedding:
        return is(Recipe::tq1_0, Recipe::tq2_0) ? GgmlType::q4_k : type;
      case TensorCategory::key:
        return facts_.experts == 8 ? GgmlType::q8_0 : type;
      case TensorCategory::feed_forward_down:
        return feed_forward_down(tensor, type);
      case TensorCategory::attention_output:
        return attention_output(type);
      default:
        return type;
    }
  }

  GgmlType head(const RecipeTensor& tensor, GgmlType type) const {
    if (options_.output_type) return *options_.output_type;
    if (is(Recipe::mxfp4_moe) || is_falcon() || tensor.shape.back() % info_of(type).block != 0) return GgmlType::q8_0;
    return type == GgmlType::q8_0 ? type : GgmlType::q6_k;
  }

  GgmlType value(GgmlType type) {
    const uint32_t index = values_seen_++;
    const bool is_shared = group_size() >= 4;  // few rows serve many heads
    if (is(Recipe::q2_k))
      type = is_shared ? GgmlType::q4_k : GgmlType::q3_k;
    else if (is(Recipe::q2_k_s) && is_shared)
      type = GgmlType::q4_k;
    else if (is(Recipe::q3_k_m))
      type = index < 2 ? GgmlType::q5_k : GgmlType::q4_k;
    else if (is(Recipe::q3_k_l))
      type = GgmlType::q5_k;
    else if (is(Recipe::iq4_nl, Recipe::iq4_xs) && is_shared)
      type = GgmlType::q5_k;
    else if (is(Recipe::q4_k_m, Recipe::q5_k_m) && deserves_more_bits(index, values_))
      type = GgmlType::q6_k;
    else if (is(Recipe::q4_k_s) && index < 4)
      type = GgmlType::q5_k;
    if (is_70b() && (type == GgmlType::q3_k || type == GgmlType::q4_k)) type = GgmlType::q5_k;
    return facts_.experts == 8 ? GgmlType::q8_0 : type;
  }

  GgmlType feed_forward_down(const RecipeTensor& tensor, GgmlType type) {
    uint32_t layer = downs_seen_++;
    if (facts_.experts > 1) layer = static_cast<uint32_t>(std::max<int64_t>(layer_of(tensor.name), 0));
    const uint32_t layers = facts_.layers;
    const bool is_early = layer < layers / 8, deserves = deserves_more_bits(layer, layers);
    switch (recipe_) {
      case Recipe::q2_k:
        return GgmlType::q3_k;
      case Recipe::q2_k_s:
        return is_early ? GgmlType::q4_k : type;
      case Recipe::q3_k_m:
        if (layer < layers / 16) return GgmlType::q5_k;
        return !is_falcon() || deserves ? GgmlType::q4_k : GgmlType::q3_k;
      case Recipe::q3_k_l:
        return is_falcon() ? GgmlType::q4_k : GgmlType::q5_k;
      case Recipe::q4_k_m:
        if (!is_falcon()) return deserves ? GgmlType::q6_k : type;
        return layer < layers / 16 ? GgmlType::q6_k : deserves ? GgmlType::q5_k : GgmlType::q4_k;
      case Recipe::iq4_nl:
      case Recipe::iq4_xs:
        return is_early && !options_.has_importance ? GgmlType::q5_k : type;
      case Recipe::q5_k_m:
        return deserves ? GgmlType::q6_k : type;
      case Recipe::q4_k_s:
        return !is_falcon() && is_early ? GgmlType::q5_k : type;
      case Recipe::q4_0:
        return is_early && options_.has_importance ? GgmlType::q4_1 : type;
      case Recipe::q5_0:
        return is_early && options_.has_importance ? GgmlType::q5_1 : type;
      default:
        return type;
    }
  }

  GgmlType attention_output(GgmlType type) const {
    if (is_falcon()) return is(Recipe::q3_k_l) ? GgmlType::q4_k : type;
    if (facts_.experts == 8)
      return is(Recipe::q2_k, Recipe::q3_k_s, Recipe::q3_k_m, Recipe::iq4_nl, Recipe::q4_k_s, Recipe::q4_k_m,
                Recipe::iq4_xs)
                 ? GgmlType::q5_k
                 : type;
    if (is(Recipe::q2_k)) return GgmlType::q3_k;
    if (is(Recipe::q3_k_m)) return GgmlType::q4_k;
    return is(Recipe::q3_k_l) ? GgmlType::q5_k : type;
  }

  const Recipe recipe_;
  const ModelFacts& facts_;
  const RecipeOptions& options_;
  const bool is_pure_;
  bool is_tied_ = true;                        // the embedding is also the head: no output.weight
  uint32_t values_ = 0;                        // number of attention value tensors
  uint32_t values_seen_ = 0, downs_seen_ = 0;  // so far
};

}  // namespace

const RecipeInfo& info_of(Recipe recipe) noexcept { return kRecipes[static_cast<size_t>(recipe)]; }

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
