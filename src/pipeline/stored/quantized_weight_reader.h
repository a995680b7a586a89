// Recognises how a quantized checkpoint stores its weights. The formats are in src/pipeline/stored.
#pragma once
#include <memory>
#include <string_view>

#include "core/list.h"
#include "core/result.h"
#include "pipeline/stored/source_format.h"

namespace wasmquant {

/// A tensor as it was before quantization.
struct OriginalTensor {
  std::string name;                    // LAYER.weight, or the parameter's own, where codes stand for it
  WeightDescription weight;            // source: of plain tensors theirs, else F32
  const ModelTensor* plain = nullptr;  // null: stored in codes, to be found by find()
};

/// What a quantized model's config.json says, digested once.
class StoredWeightReader {
 public:
  /// `config_text`: config.json or empty; `modelopt_text`: hf_quant_config.json or empty. Errors: format-unknown for a
  /// block of an unknown method; those of the method's format.
  static Result<StoredWeightReader> create(std::string_view config_text, std::string_view modelopt_text = {});
  /// The weight of `weight.layer` with the shape it had before. Errors: tensor-missing, shape-mismatch,
  /// dtype-unsupported, format-unsupported, naming the tensor.
  Result<StoredWeight> find(const ModelIndex& model, const WeightDescription& weight) const;

  /// The model before quantization: its tensors in their order, codes by the shapes they stand for, without scales and
  /// other parts of quantized weights. The shape of a weight is empty where it cannot be told.
  List<OriginalTensor> originals(const ModelIndex& model) const;

  /// Whether weights of the model are stored in codes.
  bool has_codes(const ModelIndex& model) const;
  bool are_codes(const ModelIndex& model, const ModelTensor& tensor) const {
    return format_->use_of(model, tensor) == TensorUse::codes;
  }
  PackMethod pack_method() const noexcept { return format_->pack_method(); }

 private:
  std::unique_ptr<SourceFormat> format_;
};

}  // namespace wasmquant
