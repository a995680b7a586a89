// Fields are appended to the parts of a graph as they come: protobuf has no order of fields. Equal constants are one.
#include "onnx_conversion/graph_text.h"

#include <algorithm>

#include "core/message.h"
#include "formats/onnx/protobuf.h"
#include "onnx_graph/onnx_editor.h"

namespace wasmquant::conversion {
namespace {

using protobuf::append_field;

// Of GraphProto.
constexpr uint32_t kNode = 1, kName = 2, kInitializer = 5, kInput = 11, kOutput = 12;
// Operators of ONNX itself as of this version, by files of this one: those that int4 weights need.
constexpr uint64_t kOpset = 21, kIrVersion = 10;

template <class T>
std::string_view bytes_of(std::span<const T> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size_bytes()};
}

// TensorShapeProto.Dimension: 1 dim_value, 2 dim_param
std::string dimension_of(const GraphAxis& axis) {
  std::string out;
  if (axis.name.empty())
    append_field(out, 1, axis.length);
  else
    append_field(out, 2, axis.name);
  return out;
}

std::string opset_of(std::string_view domain, uint64_t version) {
  std::string out;
  append_field(out, 1, domain);
  append_field(out, 2, version);
  return out;
}

}  // namespace

void NodeAttribute::add_to(NodeBytes& node) const {
  if (kind_ == Kind::integer) node.attribute(name_, integer_);
  if (kind_ == Kind::real) node.real(name_, real_);
  if (kind_ == Kind::integers) node.integers(name_, integers_);
}

// ValueInfoProto: 1 name, 2 type { 1 tensor_type { 1 elem_type, 2 shape { 1 dim } } }
void GraphText::value(uint32_t field, std::string_view name, uint32_t data_type, std::span<const GraphAxis> axes) {
  std::string shape, tensor, type, out;
  for (const GraphAxis& axis : axes) append_field(shape, 1, dimension_of(axis));
  append_field(tensor, 1, uint64_t{data_type});
  append_field(tensor, 2, shape);
  append_field(type, 1, tensor);
  append_field(out, 1, name);
  append_field(out, 2, type);
  append_field(values_, field, out);
}

void GraphText::input(std::string_view name, uint32_t data_type, std::span<const GraphAxis> axes) {
  value(kInput, name, data_type, axes);
}

void GraphText::output(std::string_view name, uint32_t data_type, std::span<const GraphAxis> axes) {
  value(kOutput, name, data_type, axes);
}

Value GraphText::named(std::string_view name) {
  std::unique_ptr<char[]>& kept = names_.emplace_back(std::make_unique<char[]>(name.size()));
  std::copy(name.begin(), name.end(), kept.get());
  return {kept.get(), name.size()};
}

Value GraphText::fresh(std::string_view part) { return named(text_of("/{}/{}_{}", place_, part, count_++)); }

void GraphText::node_to(std::string_view op_type, std::string_view domain, Inputs inputs,
                        std::span<const Value> outputs, Attributes attributes) {
  NodeBytes node(op_type, domain, fresh(op_type), "");
  for (const std::string_view name : inputs) node.input(name);
  for (const std::string_view name : outputs) node.output(name);
  for (const NodeAttribute& attribute : attributes) attribute.add_to(node);
  append_field(nodes_, kNode, node.bytes());
}

Value GraphText::node(std::string_view op_type, Inputs inputs, Attributes attributes) {
  const Value name = fresh("out");
  const Value outputs[] = {name};
  node_to(op_type, "", inputs, outputs, attributes);
  return name;
}

Value GraphText::microsoft(std::string_view op_type, Inputs inputs, Attributes attributes) {
  const Value name = fresh("out");
  const Value outputs[] = {name};
  node_to(op_type, kMicrosoft, inputs, outputs, attributes);
  return name;
}

// In a node, not in an initializer, which people are shown as a tensor of the model.
Value GraphText::constant(uint32_t data_type, std::span<const uint64_t> shape, std::string_view bytes) {
  std::string content = tensor_head("", data_type, shape);
  append_field(content, kRawData, bytes);
  for (const auto& [known, name] : constants_)
    if (known == content) return name;
  const Value name = named(text_of("/constant_{}", constants_.size()));
  append_field(nodes_, kNode, NodeBytes("Constant", "", name, "").output(name).tensor("value", content).bytes());
  constants_.push_back({std::move(content), name});
  return name;
}

Value GraphText::integers(std::span<const int64_t> values) {
  const uint64_t count[] = {values.size()};
  return constant(kInt64, count, bytes_of(values));
}

Value GraphText::integer(int64_t value) { return constant(kInt64, {}, bytes_of(std::span<const int64_t>(&value, 1))); }

Value GraphText::number(float value) { return constant(kFloat32, {}, float_bytes(value, kFloat32)); }

Value GraphText::numbers(std::span<const float> values, std::span<const uint64_t> shape) {
  return constant(kFloat32, shape, bytes_of(values));
}

void GraphText::stored(std::string_view name, uint32_t data_type, std::span<const uint64_t> shape,
                       std::string_view location, uint64_t begin, uint64_t bytes) {
  append_field(initializers_, kInitializer,
               tensor_head(name, data_type, shape) + external_fields(location, begin, bytes));
}

std::string GraphText::finish(std::string_view name) const {
  std::string graph = nodes_, out;
  append_field(graph, kName, name);
  graph += initializers_;
  graph += values_;
  append_field(out, 1, kIrVersion);
  append_field(out, 2, std::string_view("wasmquant"));
  append_field(out, 7, graph);
  append_field(out, 8, opset_of("", kOpset));
  append_field(out, 8, opset_of(kMicrosoft, 1));
  return out;
}

}  // namespace wasmquant::conversion
