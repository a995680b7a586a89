// Folds batch norms into the layer before them (algorithms/scaling/batch_norm.h):
//   x -> Conv (W, b) -> y -> BatchNormalization (scale, B, mean, var) -> z    becomes    x -> Conv (W', b') -> z
// For Conv, ConvTranspose and Gemm with an unshared weight and no other consumer of the output, if all values of the
// norm and the bias are constants. Norms in training mode or with unknown attributes are kept.
#pragma once
#include <span>
#include <string>

#include "onnx_graph/onnx_editor.h"
#include "onnx_graph/onnx_weights.h"

namespace wasmquant::conversion {

/// A norm that can be folded.
struct OnnxNorm {
  uint32_t node = 0, layer = 0;  // BatchNormalization, and its producer
  uint32_t weight = 0;           // tensor
  uint32_t bias = onnx::kNone;   // tensor of the layer, if it has one
  uint32_t values[4] = {};       // tensors: scale, B, mean, var
  double epsilon = 1e-5;
  uint64_t channels = 0;
  // Element e of the model's weight belongs to channel e / repeat * cycle + e / inner % cycle.
  uint64_t inner = 1, cycle = 1, repeat = 1;
  std::string bias_name;   // of the new bias
  std::string bias_bytes;  // its values, in the weight's dtype
};

/// In the order of their layers' weights.
List<OnnxNorm> foldable_norms(const onnx::Model& model, const List<OnnxModelWeight>& weights);
/// BatchNormalization nodes.
uint32_t count_norms(const onnx::Model& model) noexcept;

/// The model in which layers output what the norms did and read the new biases. `norms` must outlive it.
onnx::Model without_norms(const onnx::Model& model, const List<OnnxNorm>& norms);
/// Per tensor: whether only these norms and layers use it, so it is no longer needed.
List<bool> needless_tensors(const onnx::Model& model, const List<OnnxNorm>& norms);

/// Writes that into an editor of without_norms(). `is_replaced`: per layer node, whether something else writes it.
void fold_norms(OnnxEditor& editor, std::span<const OnnxNorm> norms, const List<bool>& is_replaced);

}  // namespace wasmquant::conversion
