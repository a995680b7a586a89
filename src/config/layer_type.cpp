#include "config/layer_type.h"

#include <algorithm>

#include "config/vocabulary.h"
#include "families/expert_weights.h"

namespace wasmquant {
namespace {

// Last parts of module names, lower case. Endings begin after any prefix; exact names stand alone, because longer
// names with the same ending are something else (x_embedder and embed_out are Linear).
constexpr std::string_view kEmbeddingEndings[] = {"embedding", "embeddings", "_embed", "_embeds", "_emb", "_embd"};
constexpr std::string_view kEmbeddingNames[] = {"embed",
                                                "embeds",
                                                "emb",
                                                "embd",
                                                "embedder",
                                                "embed_tokens",
                                                "embed_tokens_per_layer",
                                                "embed_positions",
                                                "embed_in",
                                                "wte",
                                                "wpe",
                                                "shared",
                                                "relative_attention_bias",
                                                "tokens_embed",
                                                "positions_embed"};
constexpr std::string_view kNormNames[] = {"ln", "bn", "ln_f", "gn"};

// Part of a name, compared without case.
bool equals(std::string_view part, std::string_view lower_case) noexcept {
  if (part.size() != lower_case.size()) return false;
  for (size_t i = 0; i < part.size(); ++i) {
    const char c = part[i];
    if ((c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c) != lower_case[i]) return false;
  }
  return true;
}

bool ends_with(std::string_view part, std::string_view ending) noexcept {
  return part.size() >= ending.size() && equals(part.substr(part.size() - ending.size()), ending);
}

std::string_view last_part(std::string_view layer) noexcept {
  const size_t dot = layer.rfind('.');
  return dot == std::string_view::npos ? layer : layer.substr(dot + 1);
}

bool is_embedding_name(std::string_view part) noexcept {
  for (std::string_view name : kEmbeddingNames)
    if (equals(part, name)) return true;
  for (std::string_view ending : kEmbeddingEndings)
    if (ends_with(part, ending)) return true;
  return false;
}

// "norm", "input_layernorm", "norm1", "ln_1", "bn2", "LayerNorm", "ln_final".
bool is_norm_name(std::string_view part) noexcept {
  if (part.size() >= 3 && (equals(part.substr(0, 3), "ln_") || equals(part.substr(0, 3), "bn_"))) return true;
  std::string_view stem = part;
  while (!stem.empty() && ((stem.back() >= '0' && stem.back() <= '9') || stem.back() == '_')) stem.remove_suffix(1);
  for (std::string_view name : kNormNames)
    if (equals(stem, name)) return true;
  for (size_t i = 0; i + 4 <= part.size(); ++i)
    if (equals(part.substr(i, 4), "norm")) return true;
  return false;
}

}  // namespace

LayerName layer_name_of(std::string_view tensor_name) noexcept {
  if (tensor_name == "weight") return {"", TensorRole::weight};
  if (tensor_name == "bias") return {"", TensorRole::bias};
  constexpr std::string_view kWeight = ".weight", kBias = ".bias";
  if (tensor_name.ends_with(kWeight))
    return {tensor_name.substr(0, tensor_name.size() - kWeight.size()), TensorRole::weight};
  if (tensor_name.ends_with(kBias)) return {tensor_name.substr(0, tensor_name.size() - kBias.size()), TensorRole::bias};
  return {tensor_name, TensorRole::other};
}

std::string_view layer_type_of(std::string_view tensor_name, std::span<const uint64_t> shape) noexcept {
  const LayerName name = layer_name_of(tensor_name);
  const std::string_view part = last_part(name.layer);
  if (shape.size() == 3 && families::is_expert_tensor(tensor_name, {shape.begin(), shape.end()})) return kExperts;
  if (name.role == TensorRole::other) return "";
  if (name.role == TensorRole::bias || shape.size() == 1) return is_norm_name(part) ? "Norm" : "";
  // A norm over several axes; "norm" elsewhere in the name is no sign (norm_proj, adanorm_linear are Linear).
  if (ends_with(part, "norm")) return "Norm";
  switch (shape.size()) {
    case 2:
      return is_embedding_name(part) ? "Embedding" : "Linear";
    case 3:
      return "Conv1d";
    case 4:
      return "Conv2d";
    case 5:
      return "Conv3d";
    default:
      return "";
  }
}

bool is_quantizable_type(std::string_view layer_type) noexcept {
  const auto& types = config::kLayerTypes;
  if (layer_type == kExperts || layer_type == kConv1D) return true;
  return std::find(types.begin(), types.end(), layer_type) != types.end();
}

}  // namespace wasmquant
