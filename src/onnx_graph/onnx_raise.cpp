// Field numbers are those of onnx.proto.
#include <cstring>
#include <initializer_list>
#include <span>
#include <utility>

#include "core/message.h"
#include "formats/onnx/protobuf.h"
#include "onnx_graph/onnx_opset.h"

namespace wasmquant::conversion {
namespace {

constexpr uint32_t kIrVersion = 1, kOpsetImport = 8;           // of ModelProto
constexpr uint32_t kIntegerAttribute = 2, kTextAttribute = 3;  // AttributeProto.AttributeType

std::string text_field(uint32_t number, std::string_view text) {
  std::string field;
  protobuf::append_field(field, number, text);
  return field;
}

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

// The node's message with other inputs and attributes behind its own. `op_type`: its type. `output`: in the place of its
// own ones, unless it is empty.
Pieces changed_node(OnnxEditor& editor, uint32_t index, std::string_view op_type,
                    std::initializer_list<std::string_view> inputs, std::string_view output,
                    std::string_view attributes) {
  const onnx::Node& node = editor.model.nodes[index];
  std::string head;
  for (const std::string_view input : inputs) protobuf::append_field(head, 1, input);
  if (!output.empty()) protobuf::append_field(head, 2, output);
  Pieces message;
  message.add(editor.literals, head);
  for (onnx::Fields f(*editor.model.skeleton, editor.model.skeleton->field(node.whole.begin).payload); f.next();) {
    if (f.field.number == 4)
      message.add(editor.literals, text_field(4, op_type));
    else if (f.field.number != 1 && (f.field.number != 2 || output.empty()))
      message.add(f.field.whole);
  }
  message.add(editor.literals, attributes);
  return message;
}

void change_node(OnnxEditor& editor, uint32_t index, std::string_view op_type,
                 std::initializer_list<std::string_view> inputs, std::string_view attributes) {
  Pieces pieces;
  editor.append_node(pieces, changed_node(editor, index, op_type, inputs, "", attributes));
  editor.replace_node(index, std::move(pieces));
}

// Split into equal parts.
void count_outputs(OnnxEditor& editor, uint32_t index) {
  const onnx::Node& node = editor.model.nodes[index];
  std::string inner;
  protobuf::append_field(inner, 1, "num_outputs");
  protobuf::append_field(inner, 3, uint64_t{node.outputs.size()});
  protobuf::append_field(inner, 20, uint64_t{kIntegerAttribute});
  change_node(editor, index, node.op_type, {node.inputs[0]}, text_field(5, inner));
}

std::string add_reals(OnnxEditor& editor, const onnx::Node& node, std::string_view suffix, std::string_view values) {
  std::string name = editor.fresh(node.outputs[0], suffix);
  const uint64_t count[] = {values.size() / sizeof(float)};
  std::string tensor = tensor_head(name, kFloat32, count);
  protobuf::append_field(tensor, kRawData, values);
  editor.add_initializer(node.graph, editor.literal(tensor));
  return name;
}

std::string resize_attributes(std::string_view nearest) {
  std::string attributes;
  const std::pair<std::string_view, std::string_view> added[] = {{"coordinate_transformation_mode", "asymmetric"},
                                                                 {"nearest_mode", nearest}};
  for (const auto& [name, value] : added) {
    std::string inner;
    protobuf::append_field(inner, 1, name);
    protobuf::append_field(inner, 4, value);
    protobuf::append_field(inner, 20, uint64_t{kTextAttribute});
    attributes += text_field(5, inner);
  }
  return attributes;
}

// Upsample, or Resize of version 10: its second input became the third in version 11, behind an optional region.
void resize(OnnxEditor& editor, uint32_t index, std::string_view nearest) {
  const onnx::Node& node = editor.model.nodes[index];
  const std::string region = add_reals(editor, node, "_roi", "");
  change_node(editor, index, "Resize", {node.inputs[0], region, node.inputs[1]}, resize_attributes(nearest));
}

// Resize of version 10 that makes some dimensions smaller and others larger: each dimension is resized separately, and a
// node of version 11 rounds one way. `scales`: float32.
void resize_twice(OnnxEditor& editor, uint32_t index, std::string_view scales) {
  const onnx::Node& node = editor.model.nodes[index];
  std::string smaller, larger;
  for (size_t at = 0; at < scales.size(); at += sizeof(float)) {
    float scale = 1;
    const float one = 1;
    std::memcpy(&scale, scales.data() + at, sizeof(float));
    const auto bytes = [](const float& value) {
      return std::string_view(reinterpret_cast<const char*>(&value), sizeof(float));
    };
    smaller += bytes(scale < 1 ? scale : one);
    larger += bytes(scale < 1 ? one : scale);
  }
  const std::string region = add_reals(editor, node, "_roi", "");
  const std::string first = add_reals(editor, node, "_smaller", smaller);
  const std::string second = add_reals(editor, node, "_larger", larger);
  const std::string between = editor.fresh(node.outputs[0], "_between");
  Pieces nodes;
  editor.append_node(nodes, changed_node(editor, index, "Resize", {node.inputs[0], region, first}, between,
                                         resize_attributes("ceil")));
  editor.append_node(nodes,
                     changed_node(editor, index, "Resize", {between, region, second}, "", resize_attributes("floor")));
  editor.replace_node(index, std::move(nodes));
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
    const uint32_t node = inputs[first].node;
    switch (inputs[first].change) {
      case NodeChange::input:
        raise_node(editor, std::span(inputs.data(), inputs.size()).subspan(first, next - first));
        break;
      case NodeChange::flatten:
        flatten(editor, node);
        break;
      case NodeChange::count:
        count_outputs(editor, node);
        break;
      case NodeChange::floor:
        resize(editor, node, "floor");
        break;
      case NodeChange::ceil:
        resize(editor, node, "ceil");
        break;
      case NodeChange::both:
        resize_twice(editor, node, inputs[first].values);
        break;
    }
  }
  bool is_raised = false;
  for (const onnx::OpsetImport& import : model.opsets) {  // merged models may repeat it
    if (!import.domain.empty() || import.version >= opset) continue;
    editor.replace(import.whole, opset_import(editor, "", opset));
    if (std::exchange(is_raised, true)) continue;
    diagnostics.add({Severity::note, "opset-raised", "opset_import",
                     text_of("the model now uses opset {}; before, it used opset {}", opset, import.version), ""});
    const uint32_t ir_version = ir_version_of(opset);
    if (model.ir_version < 4 || model.ir_version >= ir_version) continue;
    std::string field;
    protobuf::append_field(field, kIrVersion, uint64_t{ir_version});
    editor.replace(model.ir_version_field, editor.literal(field));
  }
  return {};
}

}  // namespace wasmquant::conversion
