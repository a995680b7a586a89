// Pairs the weights of two models, one of which may be quantized, so that they can be decoded side by side.
#pragma once
#include <string>
#include <string_view>

#include "config/diagnostic.h"
#include "core/json.h"
#include "core/list.h"
#include "pipeline/model_index.h"
#include "pipeline/task.h"

namespace wasmquant {

struct ComparedPair {
  std::string name;
  TensorTask left, right;
  std::string left_format, right_format;
  WeightDescription weight;
  bool by_columns = false;
  uint64_t bytes_before = 0, bytes_after = 0;
};

struct Comparison {
  List<ComparedPair> pairs;
  List<Diagnostic> diagnostics;  // tensors of one side only, or that cannot be decoded
};

/// The configs are the texts of the models' config.json, or empty. The float tensors of the reference are compared.
Result<Comparison> compare_models(const ModelIndex& reference, std::string_view reference_config,
                                  const ModelIndex& quantized, std::string_view quantized_config,
                                  const TileBytes& tile_bytes);

}  // namespace wasmquant
