// Recognizes how a quantized checkpoint stores its weights. The formats are in src/tools.
#pragma once
#include <memory>
#include <string_view>

#include "core/list.h"
#include "core/result.h"
#include "pipeline/stored/row_lengths.h"
#include "pipeline/stored/source_block.h"
#include "pipeline/stored/source_format.h"

namespace wasmquant {

/// A tensor as it was before quantization.
struct DecodedTensor {
  std::string name;                    // LAYER.weight, or the quantized parameter's own name
  WeightDescription weight;            // source: the stored dtype of plain tensors, else F32
  const ModelTensor* plain = nullptr;  // null: stored as codes, use find()
};

/// A quantized model's config.json, parsed once.
class StoredWeightReader {
 public:
  /// `document`: config.json; null without one. `model`: whose tensors these are, and whose sibling files are read where
  /// config.json describes no quantization (source_block()); or null. Errors: format-unknown (method), those of the method's format, of check_fields() and
  /// check_leftovers().
  static Result<StoredWeightReader> create(const json::Value& document, const ModelIndex* model = nullptr);
  /// The weight of `weight.layer` with its original shape. Errors: tensor-missing, shape-mismatch, dtype-unsupported,
  /// format-unsupported, naming the tensor.
  Result<StoredWeight> find(const ModelIndex& model, const WeightDescription& weight) const;

  /// The original model: its tensors in order, without scales and other parts. A weight's shape is empty if unknown,
  /// also where more than one length of its rows fits (RowLengths).
  List<DecodedTensor> decoded_tensors(const ModelIndex& model) const;

  /// Whether any weight is stored as codes.
  bool has_codes(const ModelIndex& model) const;

  /// Whether `decoded_tensors` are the tensors as they are: none is codes, a scale or another part.
  bool is_original(const ModelIndex& model) const;
  bool are_codes(const ModelIndex& model, const ModelTensor& tensor) const {
    return role_of(model, tensor) == StoredRole::codes;
  }
  /// Warnings and notes about the block of config.json.
  const List<Diagnostic>& remarks() const noexcept { return remarks_; }
  PackMethod pack_method() const noexcept { return format_->pack_method(); }
  bool rearranges() const noexcept { return format_->rearranges(); }
  /// SourceFormat::restore.
  Status restore(const ModelIndex& model, List<ModelTensor>& tensors, std::string& config) const {
    return format_->restore(model, tensors, config);
  }

 private:
  // `model`: null if its tensors are not to be checked.
  static Result<StoredWeightReader> of_method(MakeSourceFormat* make, const SourceBlock& block,
                                              const json::Value& document, const ModelIndex* model);
  // Of rows in words, whose number of codes is not stored, the length.
  void find_lengths(const ModelIndex& model, List<DecodedTensor>& tensors) const;
  StoredRole role_of(const ModelIndex& model, const ModelTensor& tensor) const;
  List<StoredRole> roles_of(const ModelIndex& model) const;

  std::unique_ptr<SourceFormat> format_;
  List<Diagnostic> remarks_;
  RowLengths lengths_{json::Value()};  // that config.json names
};

}  // namespace wasmquant
