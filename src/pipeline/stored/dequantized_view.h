// A quantized checkpoint presented as its original model: weights with original shapes, whose values sessions decode.
#pragma once
#include <memory>

#include "core/result.h"
#include "pipeline/model_index/model_index.h"

namespace wasmquant {

/// Reads quantization_config in the model's config.json; null if absent or not safetensors. `remarks`, if given, gets
/// those of StoredWeightReader. Errors: those of StoredWeightReader::create and ::find, naming the weight that cannot be
/// decoded.
Result<std::unique_ptr<ModelIndex>> original_model(const ModelIndex& model, List<Diagnostic>* remarks = nullptr);

}  // namespace wasmquant
