// llama-quantize's mixtures. The order of the checks matters and is llama.cpp's. Source: llama.cpp, src/llama-quant.cpp (llama 0.7).
#include "gguf_conversion/recipe_mixture.h"

#include <algorithm>

namespace wasmquant::conversion {
namespace {

// The first and last eighth of the layers, and every third between.
bool deserves_more_bits(uint32_t layer, uint32_t layers) noexcept {
  return layer < layers / 8 || layer >= uint64_t{7} * layers / 8 || (layer - layers / 8) % 3 == 2;
}

}  // namespace

Mixture::Mixture(Recipe recipe, const ModelFacts& facts, const RecipeOptions& options,
                 std::span<const RecipeTensor> tensors)
    : recipe_(recipe), facts_(facts), options_(options) {
  for (const RecipeTensor& tensor : tensors) {
    const TensorCategory category = category_of(tensor.name);
    if (is_value(category)) ++values_;
    if (category == TensorCategory::output) is_tied_ = false;
  }
}

// Query heads to a key/value head.
uint32_t Mixture::group_size() const noexcept {
  return facts_.key_value_heads == 0 ? 0 : facts_.heads / facts_.key_value_heads;
}

bool Mixture::is_70b() const noexcept {
  return facts_.layers == 80 && ((facts_.architecture == "llama" && facts_.heads != facts_.key_value_heads) ||
                                 facts_.architecture == "qwen2" || facts_.architecture == "deci");
}

GgmlType Mixture::type_of(const RecipeTensor& tensor, TensorCategory category, GgmlType type) {
  if (category == TensorCategory::output || (is_tied_ && category == TensorCategory::token_embedding))
    return head(tensor, type);
  if (is(Recipe::mxfp4_moe)) {  // expert tensors are [experts, rows, columns]
    const bool has_experts = tensor.shape.size() > 2 && tensor.shape[tensor.shape.size() - 3] > 1;
    return has_experts ? GgmlType::mxfp4 : GgmlType::q8_0;
  }
  if (category == TensorCategory::token_embedding) return embedding(type);
  if (is_iq2_smaller() || is_iq2_larger()) return of_two_bits(category, type);
  if (is_value(category)) return value(type);
  switch (category) {
    case TensorCategory::key:
      if (facts_.experts == 8) return GgmlType::q8_0;
      [[fallthrough]];
    case TensorCategory::query:
      return is(Recipe::iq3_xs) ? GgmlType::iq3_xxs : is(Recipe::iq3_xxs) ? GgmlType::iq2_s : type;
    case TensorCategory::feed_forward_gate:
      return feed_forward_in(tensor, gates_seen_, type);
    case TensorCategory::feed_forward_up:
      return feed_forward_in(tensor, ups_seen_, type);
    case TensorCategory::feed_forward_down:
      return feed_forward_down(tensor, type);
    case TensorCategory::attention_output:
      return attention_output(type);
    default:
      return type;
  }
}

GgmlType Mixture::head(const RecipeTensor& tensor, GgmlType type) const {
  if (options_.output_type) return *options_.output_type;
  if (is(Recipe::mxfp4_moe) || is_falcon() || tensor.shape.back() % info_of(type).block != 0) return GgmlType::q8_0;
  if (is_iq2_smaller() || is_iq2_larger() || is(Recipe::iq3_xxs)) return GgmlType::q5_k;
  return type == GgmlType::q8_0 ? type : GgmlType::q6_k;
}

GgmlType Mixture::embedding(GgmlType type) const {
  if (is_iq2_smaller()) return GgmlType::q2_k;
  if (is_iq2_larger() || is(Recipe::iq3_xxs)) return GgmlType::iq3_s;
  return is(Recipe::tq1_0, Recipe::tq2_0, Recipe::q2_0) ? GgmlType::q4_k : type;
}

GgmlType Mixture::of_two_bits(TensorCategory category, GgmlType type) {
  const GgmlType better = is_iq2_larger() ? GgmlType::iq3_s : GgmlType::q2_k;
  if (is_value(category)) return group_size() >= 4 || facts_.experts >= 4 ? GgmlType::q4_k : better;
  if (category == TensorCategory::key) return facts_.experts == 8 ? GgmlType::q4_k : type;
  if (category == TensorCategory::feed_forward_down) return downs_seen_++ < facts_.layers / 8 ? better : type;
  if (category != TensorCategory::attention_output) return type;
  if (facts_.experts == 8) return GgmlType::q5_k;
  return is_iq2_larger() ? better : is(Recipe::iq1_s, Recipe::iq1_m) ? GgmlType::iq2_xxs : type;
}

GgmlType Mixture::value(GgmlType type) {
  const uint32_t index = values_seen_++;
  const bool is_shared = group_size() >= 4;  // few rows serve many heads
  if (is(Recipe::q2_k))
    type = is_shared ? GgmlType::q4_k : GgmlType::q3_k;
  else if (is(Recipe::q2_k_s) && is_shared)
    type = GgmlType::q4_k;
  else if (is(Recipe::iq3_xxs))
    type = is_shared ? GgmlType::q4_k : options_.has_importance ? GgmlType::iq3_xxs : GgmlType::iq3_s;
  else if (is(Recipe::iq3_m) || (is(Recipe::iq3_xs, Recipe::iq3_s) && is_shared))
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

// Tensors of a kind are counted; those of experts have a number in their name.
uint32_t Mixture::layer_in(const RecipeTensor& tensor, uint32_t& seen) const {
  const uint32_t counted = seen++;
  return facts_.experts > 1 ? static_cast<uint32_t>(std::max<int64_t>(layer_of(tensor.name), 0)) : counted;
}

GgmlType Mixture::feed_forward_down(const RecipeTensor& tensor, GgmlType type) {
  const uint32_t layer = layer_in(tensor, downs_seen_);
  const uint32_t layers = facts_.layers;
  const bool is_early = layer < layers / 8, deserves = deserves_more_bits(layer, layers);
  switch (recipe_) {
    case Recipe::q2_k:
      return GgmlType::q3_k;
    case Recipe::q2_k_s:
      return is_early ? GgmlType::q4_k : type;
    case Recipe::iq3_xxs:
      return options_.has_importance ? type : is_early ? GgmlType::q4_k : GgmlType::q3_k;
    case Recipe::iq3_m:
      return is_early || (facts_.experts == 8 && deserves) ? GgmlType::q4_k : type;
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

GgmlType Mixture::feed_forward_in(const RecipeTensor& tensor, uint32_t& seen, GgmlType type) const {
  const uint64_t layer = layer_in(tensor, seen), layers = facts_.layers;
  return is(Recipe::iq3_xs) && layer >= layers / 8 && layer < 7 * layers / 8 ? GgmlType::iq3_xxs : type;
}

GgmlType Mixture::attention_output(GgmlType type) const {
  if (is_falcon()) return is(Recipe::q3_k_l) ? GgmlType::q4_k : type;
  if (facts_.experts == 8)
    return is(Recipe::q2_k, Recipe::iq3_xs, Recipe::iq3_xxs, Recipe::q3_k_s, Recipe::q3_k_m, Recipe::iq4_nl,
              Recipe::q4_k_s, Recipe::q4_k_m, Recipe::iq3_s, Recipe::iq3_m, Recipe::iq4_xs)
               ? GgmlType::q5_k
               : type;
  if (is(Recipe::q2_k)) return GgmlType::q3_k;
  if (is(Recipe::iq3_xxs)) return GgmlType::iq3_s;
  if (is(Recipe::q3_k_m, Recipe::iq3_m)) return GgmlType::q4_k;
  return is(Recipe::q3_k_l) ? GgmlType::q5_k : type;
}

}  // namespace wasmquant::conversion
