// Edits a model with codes into one with floats: adds tensors whose values are decoded, replaces nodes, and leaves out
// what nothing reads any more.
#pragma once
#include <optional>

#include "onnx_graph/onnx_editor.h"
#include "pipeline/stored/onnx_stored_weights.h"

namespace wasmquant::conversion {

/// The float model. Tensor::decoded of its tensors are indexes of `weights`; external data are in the same files.
struct DequantizedModel {
  onnx::Model model;
  bool is_changed = false;
  List<StoredOnnxWeight> weights;
};

/// Input number `input` of a node.
struct NodeInput {
  uint32_t node = onnx::kNone;
  size_t input = 0;
};

class FloatGraph {
 public:
  explicit FloatGraph(const onnx::Model& source);

  const onnx::Model& model;
  OnnxEditor editor;

  /// The node of ONNX's own operator `op_type`, in the same graph, whose output the input is; kNone: none.
  uint32_t maker(const NodeInput& at, std::string_view op_type) const noexcept;
  /// The only node that reads the output of `node`, if it is one of ONNX's own `op_type` in the same graph; else kNone.
  uint32_t only_reader(uint32_t node, std::string_view op_type) const noexcept;
  /// The tensor that an input is; kNone: none whose values can be read, or one that a caller may set.
  uint32_t constant(const NodeInput& at) const noexcept;
  bool has(const NodeInput& at) const noexcept;
  std::string_view name(const NodeInput& at) const noexcept;
  /// Nullopt if one is given, but is not constant. Only the zero point may be missing.
  std::optional<StoredParts> parts(const NodeInput& codes, const NodeInput& scale, const NodeInput& zero_point) const;

  /// The name of an input that a new node reads; empty if it is not given.
  std::string_view read(const NodeInput& at);
  /// The name of the decoded tensor, which is added once for all uses of the same codes. `freed`: the output of a node that
  /// is replaced.
  std::string add(StoredOnnxWeight weight, std::string_view freed = {});
  /// Appends a node that is named as `after` was before it was quantized, with its attributes if wanted.
  void append(Pieces& to, std::string_view op_type, uint32_t after, const List<std::string_view>& inputs,
              const List<std::string_view>& outputs, bool with_attributes = false);
  /// Puts nodes that give its outputs in the place of a node.
  void replace(uint32_t node, Pieces pieces);

  /// Errors: format-unsupported.
  Result<DequantizedModel> finish();

 private:
  void leave_out(uint32_t node);

  List<uint32_t> reads_;          // of each node's outputs, by nodes that stay and new ones
  List<bool> is_gone_, is_kept_;  // nodes, tensors
  bool is_changed_ = false;
  List<StoredOnnxWeight> weights_;
};

}  // namespace wasmquant::conversion
