// Recognises how a quantized checkpoint stores one weight whose shape is known.
#pragma once
#include <optional>
#include <string_view>

#include "core/json.h"
#include "core/list.h"
#include "core/result.h"
#include "pipeline/model_index.h"
#include "pipeline/task.h"

namespace wasmquant {

struct StoredWeight {
  std::string format;  // of checkpoint_format_named
  TensorTask task;     // components located; tiles not set
};

/// A tensor as it was before quantization.
struct OriginalTensor {
  std::string name;                    // "LAYER.weight" where codes stand for it
  WeightDescription weight;            // source: of plain tensors theirs, else F32
  const ModelTensor* plain = nullptr;  // null: stored in codes, to be found by find()
};

/// What a quantized model's config.json says, digested once.
class StoredWeightReader {
 public:
  /// `config_text`: config.json or empty. Errors: config-invalid for a block of an unknown method.
  static Result<StoredWeightReader> create(std::string_view config_text);
  /// The weight of `weight.layer` with the shape it had before. Errors: tensor-missing, shape-mismatch, format-unknown.
  Result<StoredWeight> find(const ModelIndex& model, const WeightDescription& weight) const;

  /// The model before quantization: its tensors in their order, codes by the shapes they stand for, without scales and
  /// other parts of quantized weights. The shape of a weight is empty where it cannot be told.
  List<OriginalTensor> originals(const ModelIndex& model) const;

  /// By config.json.
  bool is_quantized() const noexcept { return !method_.empty(); }
  /// Whether weights of the model are floats of 8 or 4 bits with scales beside them (checkpoint/scaled_floats.h).
  bool has_scaled_floats(const ModelIndex& model) const;
  PackMethod pack_method() const noexcept { return config_.export_info.value_or(ExportInfo{}).pack_method; }

 private:
  Result<StoredWeight> locate(const ModelIndex& model, std::string_view format, const WeightDescription& weight,
                              const Stages& stages) const;
  /// Shapes of [out, in] that a tensor of codes may stand for.
  List<std::vector<uint64_t>> possible_shapes(const StoredTensor& codes, std::string_view layer) const;
  /// The scale of such a weight; null for others.
  const ModelTensor* scale_of(const ModelIndex& model, const ModelTensor& weight) const;
  /// Whether LAYER.PART belongs to such a weight.
  bool is_scale_of_floats(const ModelIndex& model, std::string_view layer, std::string_view part) const;
  Result<StoredWeight> find_scaled(const ModelIndex& model, const ModelTensor& plain, const ModelTensor& scale,
                                   const WeightDescription& weight) const;
  Dtype words_dtype(const ModelIndex& model, const WeightDescription& weight) const;
  std::string method_;        // quant_method, or ""
  bool is_unsigned_ = false;  // codes of awq and gptq_v2
  bool is_indexed_ = false;   // gptq with desc_act
  uint32_t bits_ = 4;         // of awq and gptq
  uint64_t block_[2] = {};    // weight_block_size of fp8
  Config config_;             // of compressed-tensors and quark
};

}  // namespace wasmquant
