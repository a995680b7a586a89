// What transformers calls the modules of a checkpoint. Configs of quantized files name modules; files keep tensor names
// that transformers renames on loading, and leave out weights that are tied to the embedding.
// Source: transformers 5, conversion_mapping.py and _tied_weights_keys of its classes.
#pragma once
#include <string>
#include <string_view>

#include "core/list.h"
#include "families/model_family.h"

namespace wasmquant::families {

/// The module's name in the loaded model, for a layer that the file calls `layer`; the same where nothing is renamed.
std::string loader_name(const ModelFamily& family, std::string_view layer);

/// Whether transformers gives a tensor of this layer another name while it loads, or makes one of it and others. It
/// then keeps the dtype of the file, whatever dtype is asked for.
bool is_converted(const ModelFamily& family, std::string_view layer);

/// Output heads that classes of this family may tie to their embedding: Linear modules without a tensor of their own.
List<std::string_view> tied_heads(const ModelFamily& family);

/// Whether transformers cannot load this layer without a tensor called `weight`, which packed weights have not: the
/// `_init_weights` of its class reads it whatever was loaded.
bool needs_plain_weight(const ModelFamily& family, std::string_view layer) noexcept;

}  // namespace wasmquant::families
