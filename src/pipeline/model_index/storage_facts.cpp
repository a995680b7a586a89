#include "pipeline/model_index/storage_facts.h"

#include <algorithm>
#include <span>

#include "core/message.h"
#include "pipeline/model_index/model_index.h"

namespace wasmquant {
namespace {

using Words = std::span<const std::string_view>;

// In the names of what tools store with codes.
constexpr std::string_view kFacts[] = {"scale", "scaling",  "zero",    "absmax", "amax", "quant",
                                       "g_idx", "codebook", "bitmask", "SCB",    "_zp",  "_offset"};
// With which such a name begins if it follows the layer's without a dot.
constexpr std::string_view kJoinedFacts[] = {"scale", "scaling", "weight", "zero", "absmax", "quant"};
constexpr std::string_view kWeight = ".weight";
// Factors of a model's own arithmetic.
constexpr std::string_view kOwnFactors[] = {"layer_scale", "logit_scale", "lora_", "embed_scale"};
constexpr std::string_view kActivations[] = {"input", "output", "activation", "_act", "act_"};
constexpr std::string_view kActivationStarts[] = {"k_", "v_", "q_", "kv_", "prob_"};

bool contains_any(std::string_view text, Words words) noexcept {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return text.find(word) != std::string_view::npos; });
}
bool starts_with_any(std::string_view text, Words words) noexcept {
  return std::any_of(words.begin(), words.end(), [&](std::string_view word) { return text.starts_with(word); });
}

bool says_how_stored(std::string_view part) noexcept {
  return contains_any(part, kFacts) && !contains_any(part, kOwnFactors) && !is_of_activations(part);
}

}  // namespace

bool is_integer_of_codes(StorageDtype dtype) noexcept {
  using enum StorageDtype;
  return dtype == U8 || dtype == I8 || dtype == I16 || dtype == U16 || dtype == I32 || dtype == U32;
}

bool is_of_activations(std::string_view part) noexcept {
  return !part.starts_with("weight") && (contains_any(part, kActivations) || starts_with_any(part, kActivationStarts));
}

List<const ModelTensor*> storage_facts_beside(const ModelIndex& model, const ModelTensor& tensor) {
  const std::string_view name = tensor.stored.name;
  const std::string_view stem = name.substr(0, name.ends_with(".weight") ? name.size() - kWeight.size() : name.size());
  List<const ModelTensor*> facts;
  for (const char* joint : {".", "_"})
    for (const ModelTensor* near : model.named(text_of("{}{}", stem, joint))) {
      const std::string_view rest = std::string_view(near->stored.name).substr(stem.size() + 1);
      const bool is_own = rest.find('.') == std::string_view::npos || rest.starts_with("weight");
      if (near == &tensor || !is_own || !says_how_stored(rest)) continue;
      if (*joint == '.' || starts_with_any(rest, kJoinedFacts)) facts.push_back(near);
    }
  return facts;
}

std::string why_not_values(const ModelIndex& model, const ModelTensor& tensor) {
  constexpr size_t kNamed = 3;
  if (tensor.stored.shape.size() < 2 || !is_integer_of_codes(tensor.stored.dtype)) return {};
  const std::string_view name = tensor.stored.name;
  const std::string_view module = name.substr(0, std::min(name.rfind('.'), name.size()));
  std::string parts;
  size_t found = 0;
  for (const ModelTensor* near : model.named(text_of("{}.", module))) {
    const std::string_view part = std::string_view(near->stored.name).substr(module.size() + 1);
    if (near == &tensor || !says_how_stored(part) || part.find('.') != std::string_view::npos) continue;
    if (found++ < kNamed) parts += text_of("{}{}", parts.empty() ? "" : ", ", part);
  }
  if (found == 0) return {};
  return text_of("quantized already, in a way that is not decoded: it is {} with {} next to it",
                 info_of(tensor.stored.dtype).name, parts);
}

bool is_rotated_source(const ModelIndex& model) {
  const Result<json::Value>& config = model.config();
  return config && !(*config)["input_rotation"].members().empty();
}

}  // namespace wasmquant
