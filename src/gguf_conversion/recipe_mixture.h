// The rules of llama.cpp's mixtures.
#pragma once
#include <span>

#include "gguf_conversion/recipe.h"
#include "gguf_conversion/tensor_category.h"

namespace wasmquant::conversion {

/// A recipe's types, tensor by tensor. It counts, so tensors are asked for once each, in llama.cpp's order.
class Mixture {
 public:
  Mixture(Recipe recipe, const ModelFacts& facts, const RecipeOptions& options, std::span<const RecipeTensor> tensors);

  /// `type`: the recipe's main type, which most tensors get.
  GgmlType type_of(const RecipeTensor& tensor, TensorCategory category, GgmlType type);

 private:
  template <class... Recipes>
  bool is(Recipes... recipes) const noexcept {
    return ((recipe_ == recipes) || ...);
  }
  uint32_t group_size() const noexcept;
  bool is_iq2_larger() const noexcept { return is(Recipe::iq2_s, Recipe::iq2_m); }
  bool is_iq2_smaller() const noexcept { return is(Recipe::iq2_xxs, Recipe::iq2_xs, Recipe::iq1_s, Recipe::iq1_m); }
  bool is_falcon() const noexcept { return facts_.architecture == "falcon"; }
  bool is_70b() const noexcept;

  GgmlType head(const RecipeTensor& tensor, GgmlType type) const;
  GgmlType embedding(GgmlType type) const;
  GgmlType of_two_bits(TensorCategory category, GgmlType type);
  GgmlType value(GgmlType type);
  GgmlType feed_forward_down(const RecipeTensor& tensor, GgmlType type);
  GgmlType attention_output(GgmlType type) const;
  uint32_t layer_in(const RecipeTensor& tensor, uint32_t& seen) const;
  GgmlType feed_forward_in(const RecipeTensor& tensor, uint32_t& seen, GgmlType type) const;

  const Recipe recipe_;
  const ModelFacts& facts_;
  const RecipeOptions& options_;
  bool is_tied_ = true;  // the embedding is also the head: no output.weight
  uint32_t values_ = 0;  // number of attention value tensors
  uint32_t values_seen_ = 0, downs_seen_ = 0, gates_seen_ = 0, ups_seen_ = 0;  // so far
};

}  // namespace wasmquant::conversion
