// An ONNX model in a model's index: its graph, and what of it counts as a tensor of the model. Listed are initializers,
// and the weights that stand in Constant nodes, in the order of the file. Texts and elements of less than 8 bits have no
// storage dtype and are left out; so are tensors without a name.
#pragma once
#include <memory>

#include "core/list.h"
#include "formats/onnx/onnx.h"
#include "numeric/storage_dtype.h"
#include "onnx_graph/onnx_weights.h"

namespace wasmquant {

struct OnnxTensor {
  uint32_t tensor = 0;                                  // index into the model's tensors
  const conversion::OnnxModelWeight* weight = nullptr;  // null: of no layer
  StorageDtype dtype = StorageDtype::F32;
};

class OnnxIndex {
 public:
  explicit OnnxIndex(std::shared_ptr<const FileDetails> file)
      : file_(std::move(file)), weights_(conversion::list_weights(model())) {}

  const onnx::Model& model() const noexcept { return static_cast<const onnx::ModelFile&>(*file_).model; }
  const List<conversion::OnnxModelWeight>& weights() const noexcept { return weights_; }
  List<OnnxTensor> tensors() const;

 private:
  std::shared_ptr<const FileDetails> file_;  // an onnx::ModelFile
  List<conversion::OnnxModelWeight> weights_;
};

}  // namespace wasmquant
