// An ONNX model as a model index: its graph and its tensors, which are initializers and weights in Constant nodes, in
// file order. Unnamed tensors, strings and sub-byte elements (no storage dtype) are left out.
#pragma once
#include <memory>

#include "core/list.h"
#include "formats/onnx/onnx.h"
#include "numeric/storage_dtype.h"
#include "onnx_graph/onnx_weights.h"

namespace wasmquant {

/// A tensor that the model index lists.
struct OnnxTensor {
  uint32_t tensor = 0;                                  // index into the model's tensors
  const conversion::OnnxModelWeight* weight = nullptr;  // null: not a layer's weight
  StorageDtype dtype = StorageDtype::F32;
};

/// The graph, shared with the file, and the weights of its layers.
class OnnxIndex {
 public:
  explicit OnnxIndex(std::shared_ptr<const FileDetails> file)
      : file_(std::move(file)), weights_(conversion::list_weights(model())) {}

  const onnx::Model& model() const noexcept { return static_cast<const onnx::ModelFile&>(*file_).model; }
  const List<conversion::OnnxModelWeight>& weights() const noexcept { return weights_; }
  List<OnnxTensor> tensors() const;
  const std::shared_ptr<const FileDetails>& file() const noexcept { return file_; }

 private:
  std::shared_ptr<const FileDetails> file_;  // an onnx::ModelFile
  List<conversion::OnnxModelWeight> weights_;
};

}  // namespace wasmquant
