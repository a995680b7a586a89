// Module names in transformers. Configs of quantized files name modules; files have tensor names that transformers
// renames on loading, and omit weights that are tied to the embedding.
// Source: transformers 5, conversion_mapping.py and _tied_weights_keys of its classes.
#pragma once
#include <string>
#include <string_view>

#include "core/list.h"
#include "families/model_family.h"

namespace wasmquant::transformers {

using families::ModelFamily;

/// The name of a layer or tensor by rules FROM=TO, separated by spaces: see loader_names.def. `with_anchored`: whether
/// rules for the start of a name apply, too.
std::string renamed(std::string_view rules, std::string_view name, bool with_anchored = true);

/// The module's name in the loaded model for the file's `layer`; unchanged if nothing is renamed.
std::string loader_name(const ModelFamily& family, std::string_view layer);

/// Whether transformers renames a tensor of this layer on loading, or merges it with others. It then keeps the file's
/// dtype regardless of the requested one.
bool is_converted(const ModelFamily& family, std::string_view layer);

/// Output heads that classes of this family may tie to their embedding: Linear modules without a tensor. Without
/// `architectures` in config.json, lm_head if tie_word_embeddings is true.
List<std::string_view> tied_heads(const ModelFamily& family);

/// Whether transformers cannot load this layer without a tensor called `weight`, which packed weights lack, because
/// `_init_weights` of its class reads it.
bool needs_plain_weight(const ModelFamily& family, std::string_view layer) noexcept;
/// Whether classes keep this parameter in float32 in models of 16 bits.
bool stays_float32(std::string_view name) noexcept;
/// The same of releases before 5.24.
bool needed_plain_weight(const ModelFamily& family, std::string_view layer) noexcept;

}  // namespace wasmquant::transformers
