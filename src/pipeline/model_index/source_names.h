// What the names of a model's tensors say before anything is planned: adapters, and names that no class of a runtime has,
// because a wrapper of the module was saved with it (torch.compile, data parallel training, checkpointing, PEFT).
#pragma once
#include <string>
#include <string_view>

#include "core/diagnostic.h"
#include "core/list.h"
#include "core/result.h"

namespace wasmquant {

class ModelIndex;

/// The name without what wrappers add: `_orig_mod.`, `_fsdp_wrapped_module.` and `_checkpoint_wrapped_module.` anywhere,
/// `module.` and `base_model.model.` at the start, in any nesting. Equal to `name` if there is nothing to take away.
std::string unwrapped_name(std::string_view name);

/// A warning about names that unwrapped_name() changes, under which no class finds its weights.
void warn_of_wrapped_names(const ModelIndex& model, List<Diagnostic>& diagnostics);

/// Errors: format-unsupported if the model is an adapter without its base, or holds parts of one next to its weights: a
/// runtime would load neither, and rounding the factors is not rounding their product.
Status check_adapter(const ModelIndex& model);

}  // namespace wasmquant
