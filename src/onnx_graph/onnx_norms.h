// Batch norms that the layer before them can take over (algorithms/scaling/batch_norm.h), and a model without them:
//   x -> Conv (W, b) -> y -> BatchNormalization (scale, B, mean, var) -> z    becomes    x -> Conv (W', b') -> z
// Of Conv, ConvTranspose and Gemm whose weight no one else uses and whose output nothing else reads, where all values
// of the norm and the bias are constants of the model. Norms in training form, and such with attributes unknown here,
// stay.
#pragma once
#include <span>
#include <string>

#include "onnx_graph/onnx_editor.h"
#include "onnx_graph/onnx_weights.h"

namespace wasmquant::conversion {

struct OnnxNorm {
  uint32_t node = 0, layer = 0;  // BatchNormalization, and the node before it
  uint32_t weight = 0;           // tensor
  uint32_t bias = onnx::kNone;   // tensor of the layer, if it has one
  uint32_t values[4] = {};       // tensors: scale, B, mean, var
  double epsilon = 1e-5;
  uint64_t channels = 0;
  // Element e of the weight, as the model has it, belongs to channel e / repeat * cycle + e / inner % cycle.
  uint64_t inner = 1, cycle = 1, repeat = 1;
  std::string bias_name;   // of the new bias
  std::string bias_bytes;  // its values, in the weight's dtype
};

/// In the order of their layers' weights.
List<OnnxNorm> foldable_norms(const onnx::Model& model, const List<OnnxModelWeight>& weights);
/// BatchNormalization nodes.
uint32_t count_norms(const onnx::Model& model) noexcept;

/// The model with the layers giving what the norms gave, and reading the new biases. `norms` outlives it.
onnx::Model without_norms(const onnx::Model& model, const List<OnnxNorm>& norms);
/// Tensors that only these norms and layers use: not needed any more. By tensor.
List<bool> needless_tensors(const onnx::Model& model, const List<OnnxNorm>& norms);

/// Writes that, into an editor of without_norms(). `is_replaced`: by layer node, whether something else writes it.
void fold_norms(OnnxEditor& editor, std::span<const OnnxNorm> norms, const List<bool>& is_replaced);

}  // namespace wasmquant::conversion
