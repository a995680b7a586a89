// Words in module names that tell embeddings, norms and linear layers apart, and the rules by the number of
// dimensions.
#include "config/match/layer_type.h"

#include <algorithm>

#include "config/spec/vocabulary.h"
#include "families/expert_weights.h"
#include "families/module_path.h"

namespace wasmquant {
namespace {

using families::last_component;

// Last components of module names, lower case. Endings match after any prefix; exact names match only themselves: longer
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
                                                "positions_embed",
                                                "embed_global",
                                                "embed_audio_tokens",
                                                "embed_text_tokens",
                                                "input_embeds_layer",
                                                "position_embeds_layer",
                                                "row_embedder",
                                                "column_embedder",
                                                "queries_embedder",
                                                "query_feat",
                                                "queries_features",
                                                "visual_embeddings_table",
                                                "iou_token",
                                                "mask_tokens",
                                                "obj_score_token",
                                                "audio_bos_eos_token",
                                                "pe_k",
                                                "presence_token",
                                                "bias_values",
                                                "scale",
                                                "shift"};
// Names that are those of embeddings only in one place: CTRL's, and SAM 3's (deformable DETR's reference_points is Linear).
constexpr std::string_view kEmbeddingLayers[] = {"transformer.w", "w", "detr_decoder.reference_points",
                                                 "detector_model.detr_decoder.reference_points"};
// Linear despite their names. Source: the modeling files of transformers.
constexpr std::string_view kLinearNames[] = {"class_embed",
                                             "decoder_embed",
                                             "decoder_embeddings",
                                             "box_linear_embeddings",
                                             "embedder.input_embedding",
                                             "patch_generator.embedder",
                                             "patch_generator.video_embedder",
                                             "predictor_embeddings",
                                             "relative_pos_embeddings",
                                             "xpath_unitseq2_embeddings"};
// Embeddings that come in numbers: "token_type_embeddings_0" (TAPAS), "xpath_tag_sub_embeddings.0" (MarkupLM).
constexpr std::string_view kNumberedEndings[] = {"embeddings", "embed_tokens", "point_embed", "codepointembedder"};
constexpr std::string_view kNormNames[] = {"ln", "bn", "ln_f", "gn"};

// A component of a name, compared without case.
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

bool is_number(std::string_view text) noexcept {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// The name before "_0" or ".0"; "" if there is no number.
std::string_view before_number(std::string_view layer) noexcept {
  const size_t at = layer.find_last_of("._");
  if (at == std::string_view::npos || !is_number(layer.substr(at + 1))) return {};
  return last_component(layer.substr(0, at));
}

bool is_embedding(std::string_view layer) noexcept {
  const std::string_view part = last_component(layer), numbered = before_number(layer);
  if (part.starts_with("patch_embed")) return false;  // a matrix is multiplied, as a convolution would be
  for (std::string_view name : kEmbeddingLayers)
    if (layer == name) return true;
  for (std::string_view name : kLinearNames)
    if (families::ends_with_components(layer, name)) return false;
  for (std::string_view ending : kNumberedEndings)
    if (ends_with(numbered, ending) && !numbered.starts_with("patch_embed")) return true;
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
  const std::string_view part = last_component(name.layer);
  if (shape.size() == 3 && families::is_expert_tensor(tensor_name, {shape.begin(), shape.end()})) return kExperts;
  if (name.role == TensorRole::other) return "";
  if (name.role == TensorRole::bias || shape.size() == 1) return is_norm_name(part) ? "Norm" : "";
  // A norm over several axes; "norm" elsewhere in the name does not count (norm_proj, adanorm_linear are Linear).
  if (ends_with(part, "norm")) return "Norm";
  switch (shape.size()) {
    case 2:
      return is_embedding(name.layer) ? "Embedding" : "Linear";
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
