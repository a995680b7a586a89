// GraphProto: 1 node, 5 initializer, 11 input, 12 output, 15 sparse_initializer; NodeProto: 1 input, 2 output, 3 name,
// 4 op_type, 5 attribute, 7 domain.
#include "formats/onnx/onnx_graph_reader.h"

#include "core/message.h"
#include "formats/onnx/onnx_tensor.h"

namespace wasmquant::onnx {

GraphReader::GraphReader(Model& model) noexcept : model_(model), skeleton_(*model.skeleton) {}

Status GraphReader::count_item() {
  if (++items_ <= kMaxItems) return {};
  return error_at(ErrorCode::file_too_large, "", "the graphs have more than {} nodes, names and tensors", kMaxItems);
}

Status GraphReader::read(const Field& field, uint32_t parent, uint32_t parent_node, const Range& attribute) {
  const auto index = static_cast<uint32_t>(model_.graphs.size());
  {
    Graph& graph = model_.graphs.emplace_back();
    graph.parent = parent;
    graph.parent_node = parent_node;
    graph.whole = field.whole;
    graph.message = field.payload;
    graph.attribute = attribute;
  }
  for (Fields f(skeleton_, field.payload); f.next();) {
    switch (f.field.number) {
      case 1:
        TRY_VOID(node(f.field, index));
        break;
      case 5:
        TRY_VOID(initializer(f.field, index));
        break;
      case 11:
      case 12:
        TRY_VOID(value(f.field, index));
        break;
      case 15:
        TRY_VOID(sparse(f.field, index));
        break;
      default:
        break;
    }
  }
  model_.graphs[index].last = static_cast<uint32_t>(model_.graphs.size() - 1);
  return {};
}

Status GraphReader::initializer(const Field& field, uint32_t graph) {
  TRY_VOID(count_item());
  Tensor& tensor = model_.tensors.emplace_back();
  TRY_VOID(read_tensor(skeleton_, field.payload, tensor));
  tensor.graph = graph;
  tensor.whole = field.whole;
  if (tensor.name.empty())
    return error_at(ErrorCode::file_invalid, text_of("byte {}", tensor.whole.begin), "a tensor has no name");
  definitions_.push_back({tensor.name, graph, static_cast<uint32_t>(model_.tensors.size() - 1), {}});
  return {};
}

// An input or output.
Status GraphReader::value(const Field& field, uint32_t graph) {
  TRY_VOID(count_item());
  std::string_view name;
  for (Fields f(skeleton_, field.payload); f.next();)
    if (f.field.number == 1) TRY_VOID(read_text(skeleton_, f.field, name));
  if (field.number == 12) {
    model_.graphs[graph].outputs.push_back(name);
  } else {
    model_.graphs[graph].inputs.push_back({name, field.whole});
    definitions_.push_back({name, graph, kNone, field.whole});
  }
  return {};
}

Status GraphReader::sparse(const Field& field, uint32_t graph) {
  for (Fields f(skeleton_, field.payload); f.next();) {
    if (f.field.number != 1 && f.field.number != 2) continue;
    Tensor tensor;
    TRY_VOID(read_foreign(f.field, tensor));
    if (f.field.number == 1) definitions_.push_back({tensor.name, graph, kNone, {}});
  }
  return {};
}

Status GraphReader::read_foreign(const Field& field, Tensor& tensor) const {
  TRY_VOID(read_tensor(skeleton_, field.payload, tensor));
  if (!tensor.is_external()) return {};
  return error_at(ErrorCode::format_unsupported, text_of("byte {}", field.whole.begin),
                  "external data outside an initializer or Constant");
}

Status GraphReader::node(const Field& field, uint32_t graph) {
  TRY_VOID(count_item());
  const auto index = static_cast<uint32_t>(model_.nodes.size());
  Node node;
  node.graph = graph;
  node.whole = field.whole;
  for (Fields f(skeleton_, field.payload); f.next();) {
    std::string_view text;
    if (f.field.number <= 7 && f.field.number != 5 && f.field.number != 6)
      TRY_VOID(read_text(skeleton_, f.field, text));
    switch (f.field.number) {
      case 1:
      case 2:
        TRY_VOID(count_item());
        (f.field.number == 1 ? node.inputs : node.outputs).push_back(text);
        break;
      case 3:
        node.name = text;
        break;
      case 4:
        node.op_type = text;
        break;
      case 7:
        node.domain = own_domain(text);
        break;
      default:
        break;
    }
  }
  for (const std::string_view output : node.outputs)
    if (!output.empty()) definitions_.push_back({output, graph, kNone, {}, index});
  model_.nodes.push_back(std::move(node));
  model_.graphs[graph].nodes.push_back(index);
  for (Fields f(skeleton_, field.payload); f.next();)
    if (f.field.number == 5) TRY_VOID(read_attribute(f.field, model_, *this, graph, index));
  return {};
}

}  // namespace wasmquant::onnx
