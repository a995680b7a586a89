// Pairs the weights of two models, quantized or not and of different formats, so that they can be decoded side by side.
// Weights of a folder and of a GGUF file go together by the names and the order of rows that converting gives them, and
// a tensor of several experts goes with the matrices that it is split into.
#pragma once
#include <string>
#include <string_view>

#include "core/diagnostic.h"
#include "core/json.h"
#include "core/list.h"
#include "pipeline/model_index/model_index.h"
#include "pipeline/task/task.h"

namespace wasmquant {

struct ComparedPair {
  std::string name;
  TensorTask left, right;
  std::string right_format;
  WeightDescription weight;  // as the left side has it
  uint64_t bytes_before = 0, bytes_after = 0;
};

struct Comparison {
  List<ComparedPair> pairs;
  List<Diagnostic> diagnostics;  // tensors of one side only, or that cannot be decoded
};

/// The configs are the texts of the models' config.json, or empty. Errors: those of StoredWeightReader::create,
/// for a folder beside a GGUF file those of conversion::convert; format-unsupported for ONNX and others.
Result<Comparison> compare_models(const ModelIndex& reference, std::string_view reference_config,
                                  const ModelIndex& quantized, std::string_view quantized_config,
                                  const TileBytes& tile_bytes);

}  // namespace wasmquant
