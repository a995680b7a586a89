// Whether the tensors of a model are those that the class of its config.json has: a class fills what it does not find with
// random values, and most loaders say so only in a log.
#pragma once
#include "core/diagnostic.h"
#include "core/list.h"
#include "core/result.h"

namespace wasmquant {

class ModelIndex;

/// Errors: format-unsupported for a name that another program gives and no class has; tensor-missing for a layer that
/// config.json counts, an expert among others, or a weight of a layer of a family whose layers are alike. A warning
/// tensor-missing for a weight that only one of the layers lacks in any other family. Nothing is compared without a
/// model_type, and where config.json names its own code (auto_map).
Status check_class_names(const ModelIndex& model, List<Diagnostic>& diagnostics);

}  // namespace wasmquant
