// A model without a graph as one with a graph: a new ONNX graph in float32 whose tensors are those of the model's files, so that it is planned
// and written like a model that was opened as ONNX.
#pragma once
#include <memory>

#include "pipeline/model_index/model_index.h"

namespace wasmquant {

/// `model` must outlive the result. Errors: config-invalid without config.json, format-unsupported for families without a graph (with what else
/// can be done), those of transformer_graph.
Result<std::unique_ptr<ModelIndex>> built_graph(const ModelIndex& model, List<Diagnostic>& diagnostics);

}  // namespace wasmquant
