// Field numbers are those of onnx.proto.
#include <span>

#include "core/message.h"
#include "formats/onnx/protobuf.h"
#include "onnx_graph/onnx_opset.h"

namespace wasmquant::conversion {
namespace {

constexpr uint32_t kIrVersion = 1, kOpsetImport = 8;  // of ModelProto

// The format version (ir_version) that introduced these operators.
uint32_t ir_version_of(uint32_t opset) noexcept {
  if (opset >= 25) return 12;
  if (opset >= 23) return 11;
  if (opset >= 21) return 10;
  if (opset >= 19) return 9;
  return opset >= 15 ? 8 : 7;
}

// The node with these attributes turned into inputs.
void raise_node(OnnxEditor& editor, std::span<const AttributeInput> raised) {
  const onnx::Node& node = editor.model.nodes[raised[0].node];
  List<std::string> inputs(node.inputs.begin(), node.inputs.end());
  Pieces message;
  for (onnx::Fields f(*editor.model.skeleton, editor.model.skeleton->field(node.whole.begin).payload); f.next();) {
    bool stays = f.field.number != 1;
    for (const AttributeInput& input : raised)
      stays = stays && node.attributes[input.attribute].whole.begin != f.field.whole.begin;
    if (stays) message.add(f.field.whole);
  }
  for (const AttributeInput& input : raised) {
    const std::string name = editor.fresh(text_of("{}_", node.outputs[0]), node.attributes[input.attribute].name);
    const uint64_t count[] = {input.values.size() / sizeof(int64_t)};
    std::string tensor = input.is_real ? tensor_head(name, kFloat32, {}) : tensor_head(name, kInt64, count);
    protobuf::append_field(tensor, kRawData, input.values);
    editor.add_initializer(node.graph, editor.literal(tensor));
    if (inputs.size() <= input.input) inputs.resize(input.input + 1);
    inputs[input.input] = name;
  }
  std::string fields;
  for (const std::string& input : inputs) protobuf::append_field(fields, 1, input);
  message.add(editor.literals, fields);
  Pieces pieces;
  editor.append_node(pieces, message);
  editor.replace_node(raised[0].node, std::move(pieces));
}

// Softmax over all dimensions from its axis on, as before version 13.
void flatten(OnnxEditor& editor, uint32_t index) {
  const onnx::Node& node = editor.model.nodes[index];
  const onnx::Attribute* axis = node.find("axis");
  const std::string_view output = node.outputs[0];
  const std::string shape = editor.fresh(output, "_shape"), matrix = editor.fresh(output, "_matrix"),
                    result = editor.fresh(output, "_flat");
  Pieces nodes;
  editor.append_node(nodes, "Shape", node, "_shape", {node.inputs[0]}, {shape});
  editor.append_node(nodes, "Flatten", node, "_flatten", {node.inputs[0]}, {matrix}, "axis",
                     axis == nullptr ? 1 : axis->integer);
  editor.append_node(nodes, node.op_type, node, "", {matrix}, {result}, "axis", 1);
  editor.append_node(nodes, "Reshape", node, "_reshape", {result, shape}, {output});
  editor.replace_node(index, std::move(nodes));
}

}  // namespace

Pieces opset_import(OnnxEditor& editor, std::string_view domain, uint64_t version) {
  std::string import, field;
  protobuf::append_field(import, 1, domain);
  protobuf::append_field(import, 2, version);
  protobuf::append_field(field, kOpsetImport, import);
  return editor.literal(field);
}

Status raise_opset(OnnxEditor& editor, uint32_t opset, DiagnosticList& diagnostics) {
  const onnx::Model& model = editor.model;
  TRY(inputs, opset_changes(model, opset));
  for (size_t first = 0, next = 0; first < inputs.size(); first = next) {
    while (next < inputs.size() && inputs[next].node == inputs[first].node) ++next;
    if (inputs[first].attribute == onnx::kNone)
      flatten(editor, inputs[first].node);
    else
      raise_node(editor, std::span(inputs.data(), inputs.size()).subspan(first, next - first));
  }
  for (const onnx::OpsetImport& import : model.opsets) {
    if (!import.domain.empty() || import.version >= opset) continue;
    editor.replace(import.whole, opset_import(editor, "", opset));
    diagnostics.add(
        {Severity::note, "opset-raised", "opset_import",
         text_of("the model's operators are now those of version {}, they were of version {}", opset, import.version),
         ""});
    const uint32_t ir_version = ir_version_of(opset);
    if (model.ir_version < 4 || model.ir_version >= ir_version) continue;
    std::string field;
    protobuf::append_field(field, kIrVersion, uint64_t{ir_version});
    editor.replace(model.ir_version_field, editor.literal(field));
  }
  return {};
}

}  // namespace wasmquant::conversion
