// Pairs the weights of two models, of any formats, so that they can be decoded side by side (matching: comparer.h).
#pragma once
#include <string>
#include <string_view>

#include "core/diagnostic.h"
#include "core/json.h"
#include "core/list.h"
#include "pipeline/model_index/model_index.h"
#include "pipeline/task/task.h"

namespace wasmquant {

/// A weight of both models. The tasks decode the same elements in the same order; bytes are as stored.
struct ComparedPair {
  std::string name;
  TensorTask left, right;
  std::string right_format;
  WeightDescription weight;  // as on the left side
  uint64_t bytes_before = 0, bytes_after = 0;
};

/// The weights that two models share.
struct Comparison {
  List<ComparedPair> pairs;
  List<Diagnostic> diagnostics;  // tensors on one side only, or that cannot be decoded
};

/// The configs are config.json, or null. Errors: those of StoredWeightReader::create and, between a folder and a GGUF
/// file, of conversion::convert; format-unsupported for ONNX and others.
Result<Comparison> compare_models(const ModelIndex& reference, const json::Value& reference_config,
                                  const ModelIndex& quantized, const json::Value& quantized_config,
                                  const TileBytes& tile_bytes);

}  // namespace wasmquant
