// The tensors of a GGUF file, from those of a model.
#pragma once
#include <span>
#include <string_view>

#include "core/diagnostic.h"
#include "gguf_conversion/architectures/family.h"
#include "gguf_conversion/architectures/hyperparameters.h"
#include "gguf_conversion/tensors/converted_tensor.h"

namespace wasmquant::conversion {

inline constexpr std::string_view kTokenEmbedding = "token_embd.weight";

/// What is mapped: views of the caller's.
struct MappedModel {
  const Family& family;
  const json::Value& config;
  const Hyperparameters& parameters;
  std::span<const SourceTensor> tensors;
};

/// Adds the tensors that GGUF has a place for, and warnings of those that are left out. Errors: format-unsupported for a tensor
/// without a row, tensor-missing, tensor-duplicate, shape-mismatch.
Status map_tensors(const MappedModel& model, DiagnosticList& diagnostics, List<ConvertedTensor>& out);

}  // namespace wasmquant::conversion
