// The rows of families, and what belongs to a folder as a whole.
#include "tools/mlx/stored/mlx_names.h"

#include <algorithm>

#include "config/match/layer_type.h"
#include "families/word_list.h"
#include "runtimes/transformers/loader_names.h"
#include "tools/mlx/stored/mlx_restorer.h"

namespace wasmquant {
namespace {

using families::ModelFamily;
using namespace mlx;

// Beginnings of names in the language model of a class with towers, and what they are in the class without.
constexpr std::string_view kTextBegins =
    "model.language_model. language_model. lm_head. model.layers. model.embed_tokens. model.norm.";
constexpr std::string_view kTextNames =
    "^model.language_model.=model. ^language_model.model.=model. ^language_model.lm_head.=lm_head.";

bool is_of_text(const ModelTensor& tensor) {
  return families::any_word(kTextBegins, [&](auto begin) { return tensor.stored.name.starts_with(begin); });
}

// Without towers the language model remains, which has a class of its own.
Result<std::string> become_text_model(const ModelFamily& family, const json::Value& config,
                                      List<ModelTensor>& tensors) {
  const std::string_view text_class = text_class_of(family.text_model_type);
  if (text_class.empty()) return cannot_undo(tensors.front(), family, "the towers of its class, which it leaves out");
  for (ModelTensor& tensor : tensors) {
    tensor.stored.name = transformers::renamed(kTextNames, tensor.stored.name);
    tensor.layer = layer_name_of(tensor.stored.name).layer;
  }
  json::Value text = config["text_config"];
  json::Array classes;
  classes.emplace_back(text_class);
  text.set("architectures", std::move(classes));
  for (const char* key : {"dtype", "torch_dtype", "tie_word_embeddings", "bos_token_id", "eos_token_id", "pad_token_id",
                          "transformers_version"})
    if (text[key].is_null() && !config[key].is_null()) text.set(key, config[key]);
  return json::write(text, 2) + "\n";
}

}  // namespace

Status restore_mlx_names(const ModelIndex& model, List<ModelTensor>& tensors, std::string& config) {
  const Result<json::Value>& parsed = model.config();
  if (!parsed) return parsed.error();
  const auto family = ModelFamily::read(*parsed);
  if (family.model_type.empty() || tensors.empty()) return {};
  for (const std::string_view type : {std::string_view(family.model_type), std::string_view(family.text_model_type)})
    if (const std::string_view refused = refused_part_of(type); !refused.empty())
      return cannot_undo(tensors.front(), family, refused);
  if (const std::optional<Family> row = row_of(family)) {
    const ModelIndex decoded = model.with_tensors(tensors);
    Restorer restorer(*row, family, *parsed, decoded);
    for (const ModelTensor& tensor : tensors) TRY_VOID(restorer.add(tensor));
    tensors = restorer.take();
    const auto is_other = [](const ModelTensor& tensor) { return !is_of_text(tensor); };
    const ModelTensor* const other = std::find_if(tensors.begin(), tensors.end(), is_other);
    if ((row->traits & kMultimodal) != 0 && other == tensors.end()) {
      TRY(text, become_text_model(family, *parsed, tensors));
      config = std::move(text);
    } else if ((row->traits & (kMultimodal | kTowers)) == kMultimodal) {
      return cannot_undo(*other, family, "its towers");
    }
  } else {
    for (const ModelTensor& tensor : tensors)
      if (tensor.stored.shape.size() > 2) return cannot_undo(tensor, family, "tensors with more than two axes");
  }
  return {};
}

}  // namespace wasmquant
