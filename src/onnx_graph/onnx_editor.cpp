#include "onnx_graph/onnx_editor.h"

#include "formats/onnx/protobuf.h"

namespace wasmquant::conversion {
namespace {

// Of GraphProto.
constexpr uint32_t kNode = 1, kInitializer = 5;
// Of NodeProto.
constexpr uint32_t kInput = 1, kOutput = 2;

}  // namespace

Pieces OnnxEditor::literal(std::string_view text) {
  Pieces pieces;
  pieces.add(literals, text);
  return pieces;
}

std::string OnnxEditor::fresh(std::string_view base, std::string_view suffix) {
  std::string name(base);
  name += suffix;
  return names_.fresh(std::move(name));
}

void OnnxEditor::open_graph(uint32_t index) {
  for (;;) {
    const onnx::Graph& graph = model.graphs[index];
    edits_.open(graph.whole);
    if (graph.parent == onnx::kNone) return;
    edits_.open(graph.attribute);
    edits_.open(model.nodes[graph.parent_node].whole);
    index = graph.parent;
  }
}

Pieces OnnxEditor::renamed(const onnx::Node& node, std::string_view input, std::string_view output) {
  Pieces message;
  for (onnx::Fields f(*model.skeleton, model.skeleton->field(node.whole.begin).payload); f.next();)
    if (f.field.number != kInput && f.field.number != kOutput) message.add(f.field.whole);
  std::string names;
  protobuf::append_field(names, kInput, input);
  for (size_t i = 1; i < node.inputs.size(); ++i) protobuf::append_field(names, kInput, node.inputs[i]);
  protobuf::append_field(names, kOutput, output);
  message.add(literals, names);
  return message;
}

void OnnxEditor::replace_node(uint32_t node, Pieces pieces) {
  open_graph(model.nodes[node].graph);
  edits_.replace(model.nodes[node].whole, std::move(pieces));
  ++replaced;
}

void OnnxEditor::append_node(Pieces& to, const NodeBytes& node) { append_node(to, literal(node.bytes())); }

void OnnxEditor::append_node(Pieces& to, const Pieces& node) { to.add_field(literals, kNode, node); }

void OnnxEditor::append_node(Pieces& to, std::string_view op_type, const onnx::Node& after, std::string_view suffix,
                             std::initializer_list<std::string_view> inputs,
                             std::initializer_list<std::string_view> outputs, const char* attribute, int64_t value) {
  NodeBytes node(op_type, "", after.name, suffix);
  for (const std::string_view name : inputs) node.input(name);
  for (const std::string_view name : outputs) node.output(name);
  if (attribute != nullptr) node.attribute(attribute, value);
  append_node(to, node);
}

void OnnxEditor::add_to_graph(uint32_t graph, Pieces fields) {
  open_graph(graph);
  insert(model.graphs[graph].message.begin, std::move(fields));
}

void OnnxEditor::add_initializer(uint32_t graph, const Pieces& tensor) {
  Pieces field;
  field.add_field(literals, kInitializer, tensor);
  add_to_graph(graph, std::move(field));
}

std::string OnnxEditor::constant(uint32_t graph, std::string_view base, std::string_view suffix, uint32_t data_type,
                                 std::span<const uint64_t> shape, std::string_view bytes) {
  std::string name = fresh(base, suffix);
  std::string tensor = tensor_head(name, data_type, shape);
  protobuf::append_field(tensor, kRawData, bytes);
  add_initializer(graph, literal(tensor));
  return name;
}

std::string OnnxEditor::int64_list(uint32_t graph, std::string_view base, std::string_view suffix,
                                   const std::vector<uint64_t>& values) {
  std::string bytes;
  for (const uint64_t value : values)
    for (int byte = 0; byte < 8; ++byte) bytes += static_cast<char>(value >> (8 * byte) & 0xFF);
  const uint64_t count[] = {values.size()};
  return constant(graph, base, suffix, kInt64, count, bytes);
}

void OnnxEditor::drop(const onnx::Tensor& tensor, Pieces instead) {
  open_graph(tensor.graph);
  if (tensor.node != onnx::kNone) {
    edits_.replace(model.nodes[tensor.node].whole, std::move(instead));
    return;
  }
  edits_.replace(tensor.whole, {});
  if (instead.bytes() > 0) add_to_graph(tensor.graph, std::move(instead));
  if (tensor.input.bytes() > 0) edits_.replace(tensor.input, {});
}

}  // namespace wasmquant::conversion
