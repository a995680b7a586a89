// An ONNX file in a model's index: its bones, fed as they are asked for, and what of it counts as a tensor of the
// model. Listed are initializers, and the weights that stand in Constant nodes, in the order of the file. Texts and
// elements of less than 8 bits have no storage dtype and are left out; so are tensors without a name.
#pragma once
#include <memory>
#include <optional>
#include <span>

#include "core/list.h"
#include "core/result.h"
#include "formats/onnx/onnx.h"
#include "numeric/storage_dtype.h"
#include "onnx_graph/onnx_weights.h"

namespace wasmquant {

/// Whether the file's first bytes are those of a ModelProto: field 1, ir_version, and nothing that a header of
/// safetensors could be, whose length has zeros there.
bool looks_like_onnx(std::span<const uint8_t> prefix) noexcept;

struct OnnxTensor {
  uint32_t tensor = 0;                                  // index into the model's tensors
  const conversion::OnnxModelWeight* weight = nullptr;  // null: of no layer
  StorageDtype dtype = StorageDtype::F32;
};

class OnnxIndex {
 public:
  explicit OnnxIndex(uint64_t file_bytes) : skeleton_(std::make_unique<onnx::Skeleton>(file_bytes)) {}

  /// 0 bytes: all is read.
  onnx::Skeleton::Need need() const noexcept { return skeleton_ ? skeleton_->need() : onnx::Skeleton::Need{}; }
  /// Bytes from need().offset on. Errors: those of Skeleton::feed and onnx::read_model.
  Status feed(std::span<const uint8_t> bytes);
  bool is_complete() const noexcept { return model_.has_value(); }

  // ---- when complete
  const onnx::Model& model() const noexcept { return *model_; }
  const List<conversion::OnnxModelWeight>& weights() const noexcept { return weights_; }
  List<OnnxTensor> tensors() const;

 private:
  std::unique_ptr<onnx::Skeleton> skeleton_;  // until it is complete
  std::optional<onnx::Model> model_;
  List<conversion::OnnxModelWeight> weights_;
};

}  // namespace wasmquant
