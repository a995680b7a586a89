// Which bytes of a model become the values of a step's tensors, in any storage.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "gguf_conversion/architectures/family.h"
#include "pipeline/forward/forward_plan.h"
#include "pipeline/stored/quantized_weight_reader.h"

namespace wasmquant {

/// The layer of a tensor's name.
inline std::string_view without_weight(std::string_view name) noexcept { return name.substr(0, name.rfind('.')); }

/// Adds tensors to steps, by their names in transformers; a GGUF file's are found under its own. Errors: tensor-missing,
/// shape-mismatch, dtype-unsupported and not-implemented naming the tensor.
class StepTensors {
 public:
  /// `family`: of a GGUF model, else null.
  StepTensors(const ModelIndex& index, const StoredWeightReader& reader, const TileBytes& tile_bytes,
              const conversion::Family* family, const model::Architecture& a)
      : index_(index), reader_(reader), tile_bytes_(tile_bytes), family_(family), a_(a) {}

  bool is_gguf() const noexcept { return family_ != nullptr; }
  static Error is_arranged(const std::string& name);
  bool has_layer(const std::string& layer) const noexcept;

  /// Adds a matrix [rows, columns] in any storage.
  Status add_matrix(ForwardStep& step, uint32_t slot, std::string layer, const char* type, uint64_t rows,
                    uint64_t columns, bool can_stream);

  bool has_tensor(const std::string& name) const noexcept { return index_.find(name) != nullptr; }

  /// Adds a matrix [rows, columns] of a tensor whose values are plain and of this shape, from an element on.
  Status add_slice(ForwardStep& step, uint32_t slot, const std::string& name, const std::vector<uint64_t>& shape,
                   uint64_t first, uint64_t rows, uint64_t columns);

  /// Adds columns of one expert's matrix in a tensor [experts, in, out] of plain values, as [out, in].
  Status add_turned_slice(ForwardStep& step, uint32_t slot, const std::string& name, const std::vector<uint64_t>& shape,
                          uint64_t expert, uint64_t first, uint64_t columns);

  /// Adds a matrix of a tensor [experts, rows, columns] in any storage that keeps them apart.
  Status add_one_of(ForwardStep& step, uint32_t slot, const std::string& name, const std::vector<uint64_t>& shape,
                    uint64_t expert);

  Status add_vector(ForwardStep& step, uint32_t slot, std::string name, uint64_t length);

 private:
  /// A tensor under the name in its file.
  struct StoredName {
    std::string name;
    ValueTransform change;     // to be reverted
    int64_t expert = -1;       // which of those that are stacked in it
    bool is_arranged = false;  // in another way than `change` reverts
  };

  /// A tensor of plain values and of this shape.
  Result<const ModelTensor*> plain_tensor(const std::string& name, const std::vector<uint64_t>& shape) const;

  /// Of values as they are.
  static Result<TensorTask> plain_task(const ModelTensor& tensor, const WeightDescription& weight);

  /// Maps a transformers name.
  StoredName stored(std::string name) const;

  static void set_change(TensorTask& task, const ValueTransform& change);

  static Error missing(const std::string& name);

  Status add(ForwardStep& step, uint32_t slot, TensorTask task, bool is_streamed);

  static Error wrong_shape(const ModelTensor& tensor, const std::vector<uint64_t>& wanted);

  const ModelIndex& index_;
  const StoredWeightReader& reader_;
  const TileBytes& tile_bytes_;
  const conversion::Family* family_;
  const model::Architecture& a_;
};

}  // namespace wasmquant
