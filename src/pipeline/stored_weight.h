// Recognises how a quantized checkpoint stores one weight whose shape is known.
#pragma once
#include <optional>
#include <string_view>

#include "core/json.h"
#include "core/result.h"
#include "pipeline/model_index.h"
#include "pipeline/task.h"

namespace wasmquant {

struct StoredWeight {
  std::string format;  // of checkpoint_format_named
  TensorTask task;     // components located; tiles not set
};

/// What a quantized model's config.json says, digested once.
class StoredWeightReader {
 public:
  /// `config_text`: config.json or empty. Errors: config-invalid for a block of an unknown method.
  static Result<StoredWeightReader> create(std::string_view config_text);
  /// The weight of `weight.layer` with the shape it had before. Errors: tensor-missing, shape-mismatch, format-unknown.
  Result<StoredWeight> find(const ModelIndex& model, const WeightDescription& weight) const;

  bool is_quantized() const noexcept { return !method_.empty(); }
  PackMethod pack_method() const noexcept { return quark_.export_info.value_or(ExportInfo{}).pack_method; }

 private:
  Result<StoredWeight> locate(const ModelIndex& model, std::string_view format, const WeightDescription& weight,
                              const Stages& stages) const;
  std::string method_;  // "compressed-tensors", "quark" or ""
  Config quark_;
};

}  // namespace wasmquant
