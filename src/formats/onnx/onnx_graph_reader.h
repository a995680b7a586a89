// Graphs of a model's skeleton, with their nodes, tensors and names.
#pragma once
#include "formats/onnx/onnx_uses.h"

namespace wasmquant::onnx {

/// The standard domain has two names; this is the empty one.
constexpr std::string_view own_domain(std::string_view domain) noexcept {
  return domain == "ai.onnx" ? std::string_view() : domain;
}

/// Fills nodes, tensors and graphs of a model. Errors: file-invalid, file-too-large, format-unsupported.
class GraphReader {
 public:
  explicit GraphReader(Model& model) noexcept;

  /// The graph of a field and those in it. `parent_node` and `attribute`: what holds it.
  Status read(const Field& field, uint32_t parent, uint32_t parent_node, const Range& attribute);
  List<Definition>& definitions() noexcept { return definitions_; }

  /// Counts a node, name or tensor. Errors: file-too-large.
  Status count_item();
  /// A tensor that stays unchanged.
  Status read_foreign(const Field& field, Tensor& tensor) const;

 private:
  Status node(const Field& field, uint32_t graph);
  Status initializer(const Field& field, uint32_t graph);
  Status value(const Field& field, uint32_t graph);
  Status sparse(const Field& field, uint32_t graph);

  Model& model_;
  const Skeleton& skeleton_;
  List<Definition> definitions_;
  uint32_t items_ = 0;
};

/// Adds an attribute to its node; graphs in it are read by `graphs`, and a Constant's value becomes a tensor of the model.
Status read_attribute(const Field& field, Model& model, GraphReader& graphs, uint32_t graph, uint32_t node);

}  // namespace wasmquant::onnx
