// AttributeProto: 1 name, 2 f, 3 i, 5 t, 6 g, 10 tensors, 11 graphs, 22 sparse_tensor, 23 sparse_tensors.
#include <bit>
#include <utility>

#include "core/message.h"
#include "formats/onnx/onnx_graph_reader.h"
#include "formats/onnx/onnx_tensor.h"
#include "formats/tensor_name.h"

namespace wasmquant::onnx {
namespace {

using protobuf::Wire;

class AttributeReader {
 public:
  AttributeReader(Model& model, GraphReader& graphs, uint32_t graph, uint32_t node)
      : model_(model), skeleton_(*model.skeleton), graphs_(graphs), graph_(graph), node_(node) {}

  Status read(const Field& field) {
    TRY_VOID(graphs_.count_item());
    Attribute out;
    out.whole = field.whole;
    bool has_tensor = false, has_graph = false;
    for (Fields f(skeleton_, field.payload); f.next();) {
      switch (f.field.number) {
        case 1:
          TRY_VOID(read_text(skeleton_, f.field, out.name));
          break;
        case 2:
          TRY_VOID(expect(f.field, Wire::fixed32));
          out.real = std::bit_cast<float>(static_cast<uint32_t>(f.field.value));
          break;
        case 3:
          TRY_VOID(expect(f.field, Wire::varint));
          out.integer = static_cast<int64_t>(f.field.value);
          break;
        default:
          break;
      }
    }
    const bool is_constant = model_.nodes[node_].op_type == "Constant" && model_.nodes[node_].domain.empty() &&
                             out.name == "value" && model_.nodes[node_].outputs.size() == 1;
    for (Fields f(skeleton_, field.payload); f.next();) {
      const uint32_t number = f.field.number;
      if ((number == 5 && std::exchange(has_tensor, true)) || (number == 6 && std::exchange(has_graph, true)))
        return error_at(ErrorCode::file_invalid, text_of("byte {}", f.field.whole.begin),
                        "an attribute has two values");
      if (number == 5 && is_constant) {
        TRY_VOID(constant(f.field));
      } else if (number == 5 || number == 10) {
        Tensor tensor;
        TRY_VOID(graphs_.read_foreign(f.field, tensor));
      } else if (number == 6 || number == 11) {
        if (model_.nodes[node_].op_type == "Constant" && model_.nodes[node_].domain.empty())
          return error_at(ErrorCode::file_invalid, text_of("byte {}", f.field.whole.begin),
                          "a Constant holds a graph; it may hold one value");
        model_.nodes[node_].graphs.push_back(static_cast<uint32_t>(model_.graphs.size()));
        TRY_VOID(graphs_.read(f.field, graph_, node_, field.whole));
      } else if (number == 22 || number == 23) {
        for (Fields s(skeleton_, f.field.payload); s.next();) {
          Tensor tensor;
          if (s.field.number == 1 || s.field.number == 2) TRY_VOID(graphs_.read_foreign(s.field, tensor));
        }
      }
    }
    model_.nodes[node_].attributes.push_back(out);
    return {};
  }

 private:
  // The node's output names its tensor: the output's definition becomes the tensor's.
  Status constant(const Field& field) {
    TRY_VOID(graphs_.count_item());
    const std::string_view name = model_.nodes[node_].outputs[0];
    Tensor& tensor = model_.tensors.emplace_back();
    TRY_VOID(read_tensor(skeleton_, field.payload, tensor));
    tensor.name = name;
    tensor.graph = graph_;
    tensor.node = node_;
    tensor.whole = field.whole;
    for (const Attribute& other : model_.nodes[node_].attributes)
      if (other.name == "value")
        return error_at(ErrorCode::file_invalid, shown_name(name), "a Constant has two values");
    if (name.empty()) return {};
    List<Definition>& definitions = graphs_.definitions();
    // the output is the latest definition, because a Constant has no subgraphs
    for (size_t i = definitions.size(); i-- > 0;)
      if (definitions[i].name == name && definitions[i].graph == graph_) {
        definitions[i].tensor = static_cast<uint32_t>(model_.tensors.size() - 1);
        break;
      }
    return {};
  }

  Model& model_;
  const Skeleton& skeleton_;
  GraphReader& graphs_;
  const uint32_t graph_, node_;
};

}  // namespace

Status read_attribute(const Field& field, Model& model, GraphReader& graphs, uint32_t graph, uint32_t node) {
  return AttributeReader(model, graphs, graph, node).read(field);
}

}  // namespace wasmquant::onnx
