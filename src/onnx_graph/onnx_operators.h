// Replaces consumers of float weights by nodes that read quantized weights.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "onnx_graph/onnx_editor.h"
#include "onnx_graph/onnx_rewrite.h"

namespace wasmquant::conversion {

/// Appends to `nodes` what gives the output of `node`, a Gather from rows, from the codes, scales and zero points that
/// its indices name. `names`: of the components of the choice's layout, gather_rows or mat_mul_n_bits.
void gather_rows(OnnxEditor& editor, const OnnxChoice& choice, const onnx::Node& node, const List<std::string>& names,
                 Pieces& nodes);

/// Replaces the consumers of all choices.
class OnnxOperators {
 public:
  /// Finds inputs shared by nodes. The editor and the choices must outlive it.
  OnnxOperators(OnnxEditor& editor, std::span<const OnnxChoice> choices, uint32_t accuracy_level);

  /// DequantizeLinear, or Cast and Mul, instead of the tensor, or of the node of `view`, under the same name. `names`: of
  /// the layout's components.
  void dequantize(const OnnxChoice& choice, uint32_t view, const List<std::string>& names);
  /// Replaces the consumer by the operators of the choice's form, which it must support.
  void replace(const OnnxChoice& choice, const onnx::Consumer& consumer, const List<std::string>& names);

 private:
  // An input shared by nodes of one graph is quantized once, before the first of them.
  struct QuantizedInput {
    std::string_view name;
    uint32_t graph, node;
    std::string codes, scale, zero_point;  // names; of the first node only
  };
  QuantizedInput& first_use(const onnx::Node& node);
  Pieces values(const OnnxChoice& choice, std::string_view output, const List<std::string>& names);
  std::string product_name(const onnx::Node& node);
  void add_bias(const onnx::Node& node, std::string_view product, std::string_view bias, Pieces& nodes);
  std::string reshaped_bias(const onnx::Node& node, size_t rank, Pieces& nodes);
  void multiply(const OnnxChoice& choice, const onnx::Node& node, const List<std::string>& names, Pieces& nodes);
  void multiply_integers(const OnnxChoice& choice, const onnx::Consumer& consumer, const List<std::string>& names,
                         Pieces& nodes);

  OnnxEditor& editor_;
  const uint32_t accuracy_level_;
  List<QuantizedInput> inputs_;
  List<uint32_t> input_order_;  // by name, graph, node
};

}  // namespace wasmquant::conversion
