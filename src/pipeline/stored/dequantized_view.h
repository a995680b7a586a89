// A quantized checkpoint as the model that it was made from, so that it can be planned like any other: weights with
// their shapes, whose values sessions decode.
#pragma once
#include <memory>

#include "core/result.h"
#include "pipeline/model_index/model_index.h"

namespace wasmquant {

/// By the quantization_config of the model's config.json; null when it has none, or is no safetensors model. Errors:
/// those of StoredWeightReader::create and ::find, naming the weight that cannot be decoded.
Result<std::unique_ptr<ModelIndex>> original_model(const ModelIndex& model);

}  // namespace wasmquant
