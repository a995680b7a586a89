// Rewrites a model: replaces nodes, adds tensors and nodes with unique names to its graphs.
#pragma once
#include <initializer_list>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "formats/onnx/onnx.h"
#include "onnx_graph/onnx_edits.h"
#include "onnx_graph/onnx_names.h"
#include "onnx_graph/onnx_nodes.h"

namespace wasmquant::conversion {

/// The domain of ONNX Runtime's contributed operators.
inline constexpr std::string_view kMicrosoft = "com.microsoft";

/// Collects the edits of one model.
class OnnxEditor {
 public:
  explicit OnnxEditor(const onnx::Model& source) : model(source), edits_(*source.skeleton), names_(source) {}

  const onnx::Model& model;
  std::string literals;
  uint32_t replaced = 0;  // nodes

  Pieces literal(std::string_view text);
  /// A new name: `base` with `suffix`, made unique if taken.
  std::string fresh(std::string_view base, std::string_view suffix);

  void replace(const onnx::Range& range, Pieces pieces) { edits_.replace(range, std::move(pieces)); }
  void insert(uint64_t at, Pieces pieces) { edits_.replace({at, at}, std::move(pieces)); }
  /// Opens a message that contains edits; open_graph opens those around its graph.
  void open(const onnx::Range& field) { edits_.open(field); }
  /// Opens all messages around a graph's content.
  void open_graph(uint32_t graph);

  /// The model's node message with this first input, the inputs after it, and this output.
  Pieces renamed(const onnx::Node& node, std::string_view input, std::string_view output);
  /// `pieces`: whole fields of its graph.
  void replace_node(uint32_t node, Pieces pieces);
  void append_node(Pieces& to, const NodeBytes& node);
  void append_node(Pieces& to, const Pieces& node);
  /// Appends an ONNX operator, named after another node, with at most one attribute.
  void append_node(Pieces& to, std::string_view op_type, const onnx::Node& after, std::string_view suffix,
                   std::initializer_list<std::string_view> inputs, std::initializer_list<std::string_view> outputs,
                   const char* attribute = nullptr, int64_t value = 0);
  /// Inserts before all nodes.
  void add_to_graph(uint32_t graph, Pieces fields);
  void add_initializer(uint32_t graph, const Pieces& tensor);
  /// Adds a tensor with these bytes; returns its name, a new one: `base` with `suffix`.
  std::string constant(uint32_t graph, std::string_view base, std::string_view suffix, uint32_t data_type,
                       std::span<const uint64_t> shape, std::string_view bytes);
  /// The same with the values of a list.
  std::string int64_list(uint32_t graph, std::string_view base, std::string_view suffix,
                         const std::vector<uint64_t>& values);
  /// Removes the tensor and the graph input whose default it is; inserts `instead`, fields of its graph.
  void drop(const onnx::Tensor& tensor, Pieces instead);

  Result<Pieces> apply() { return edits_.apply(literals); }

 private:
  Edits edits_;
  OnnxNames names_;
};

}  // namespace wasmquant::conversion
