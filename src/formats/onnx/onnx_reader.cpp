// Reads a model's skeleton: nodes, attributes, tensors and graphs, without the values of tensors.
#include <bit>

#include "core/message.h"
#include "core/order.h"
#include "formats/onnx/onnx_tensor.h"
#include "formats/onnx/onnx_uses.h"
#include "formats/tensor_name.h"

namespace wasmquant::onnx {
namespace {

using protobuf::Wire;

// The standard domain has two names.
std::string_view own_domain(std::string_view domain) { return domain == "ai.onnx" ? std::string_view() : domain; }

class Reader {
 public:
  explicit Reader(Model& model) : model_(model), skeleton_(*model.skeleton) {}

  Status run() {
    for (Fields f(skeleton_, {0, skeleton_.file_bytes()}); f.next();) TRY_VOID(take(f.field));
    if (model_.graphs.empty())
      return error_at(ErrorCode::format_unknown, "", "an ONNX model has a graph; this file has none");
    if (model_.opsets.empty())
      return error_at(ErrorCode::file_invalid, "", "the model does not say which opsets it uses");
    TRY_VOID(find_uses(model_, definitions_));
    return list_locations();
  }

 private:
  Status take(const Field& field) {
    switch (field.number) {
      case 1:
        TRY_VOID(expect(field, Wire::varint));
        model_.ir_version = field.value;
        model_.ir_version_field = field.whole;
        return {};
      case 7:
        if (!model_.graphs.empty())
          return error_at(ErrorCode::file_invalid, text_of("byte {}", field.whole.begin), "the graph appears twice");
        return graph(field, kNone, kNone, {});
      case 8:
        return opset(field);
      case 25:
        ++model_.functions;
        for (Fields f(skeleton_, field.payload); f.next();)
          if (f.field.number == 7) TRY_VOID(function_node(f.field));
        return {};
      default:
        return {};
    }
  }

  Status opset(const Field& field) {
    OpsetImport& import = model_.opsets.emplace_back();
    import.whole = field.whole;
    for (Fields f(skeleton_, field.payload); f.next();) {
      if (f.field.number == 1) TRY_VOID(read_text(skeleton_, f.field, import.domain));
      if (f.field.number == 2) {
        TRY_VOID(expect(f.field, Wire::varint));
        import.version = f.field.value;
      }
    }
    import.domain = own_domain(import.domain);
    for (const OpsetImport& other : model_.opsets)
      if (&other != &import && other.domain == import.domain)
        return error_at(ErrorCode::file_invalid, text_of("byte {}", field.whole.begin),
                        "two opset versions of domain {q}", import.domain);
    if (model_.opsets.size() > 1000)
      return error_at(ErrorCode::file_invalid, text_of("byte {}", field.whole.begin), "more than 1000 operator sets");
    return {};
  }

  Status function_node(const Field& field) {
    std::string_view op_type, domain;
    for (Fields f(skeleton_, field.payload); f.next();) {
      if (f.field.number == 4) TRY_VOID(read_text(skeleton_, f.field, op_type));
      if (f.field.number == 7) TRY_VOID(read_text(skeleton_, f.field, domain));
    }
    if (is_quantized_operator(own_domain(domain), op_type)) ++model_.quantized_nodes;
    return {};
  }

  Status count_item() {
    if (++items_ <= kMaxItems) return {};
    return error_at(ErrorCode::file_too_large, "", "the graphs have more than {} nodes, names and tensors", kMaxItems);
  }

  Status graph(const Field& field, uint32_t parent, uint32_t parent_node, const Range& attribute) {
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
        case 5: {
          TRY_VOID(count_item());
          Tensor& tensor = model_.tensors.emplace_back();
          TRY_VOID(read_tensor(skeleton_, f.field.payload, tensor));
          tensor.graph = index;
          tensor.whole = f.field.whole;
          TRY_VOID(define_tensor());
          break;
        }
        case 11:
        case 12: {
          TRY_VOID(count_item());
          std::string_view name;
          TRY_VOID(value_name(f.field, name));
          if (f.field.number == 12) {
            model_.graphs[index].outputs.push_back(name);
          } else {
            model_.graphs[index].inputs.push_back({name, f.field.whole});
            definitions_.push_back({name, index, kNone, f.field.whole});
          }
          break;
        }
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

  Status value_name(const Field& field, std::string_view& name) {
    for (Fields f(skeleton_, field.payload); f.next();)
      if (f.field.number == 1) TRY_VOID(read_text(skeleton_, f.field, name));
    return {};
  }

  Status define_tensor() {
    const Tensor& tensor = model_.tensors.back();
    if (tensor.name.empty())
      return error_at(ErrorCode::file_invalid, text_of("byte {}", tensor.whole.begin), "a tensor has no name");
    definitions_.push_back({tensor.name, tensor.graph, static_cast<uint32_t>(model_.tensors.size() - 1), {}});
    return {};
  }

  Status sparse(const Field& field, uint32_t graph) {
    for (Fields f(skeleton_, field.payload); f.next();) {
      if (f.field.number != 1 && f.field.number != 2) continue;
      Tensor tensor;
      TRY_VOID(read_foreign(f.field, tensor));
      if (f.field.number == 1) definitions_.push_back({tensor.name, graph, kNone, {}});
    }
    return {};
  }

  // A tensor that stays unchanged.
  Status read_foreign(const Field& field, Tensor& tensor) {
    TRY_VOID(read_tensor(skeleton_, field.payload, tensor));
    if (!tensor.is_external()) return {};
    return error_at(ErrorCode::format_unsupported, text_of("byte {}", field.whole.begin),
                    "external data outside an initializer or Constant");
  }

  Status node(const Field& field, uint32_t graph) {
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
      if (f.field.number == 5) TRY_VOID(attribute(f.field, graph, index));
    return {};
  }

  // AttributeProto: 1 name, 2 f, 3 i, 5 t, 6 g, 10 tensors, 11 graphs, 22 sparse_tensor, 23 sparse_tensors
  Status attribute(const Field& field, uint32_t graph, uint32_t node) {
    TRY_VOID(count_item());
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
    const bool is_constant = model_.nodes[node].op_type == "Constant" && model_.nodes[node].domain.empty() &&
                             out.name == "value" && model_.nodes[node].outputs.size() == 1;
    for (Fields f(skeleton_, field.payload); f.next();) {
      const uint32_t number = f.field.number;
      if ((number == 5 && std::exchange(has_tensor, true)) || (number == 6 && std::exchange(has_graph, true)))
        return error_at(ErrorCode::file_invalid, text_of("byte {}", f.field.whole.begin),
                        "an attribute has two values");
      if (number == 5 && is_constant) {
        TRY_VOID(constant(f.field, graph, node));
      } else if (number == 5 || number == 10) {
        Tensor tensor;
        TRY_VOID(read_foreign(f.field, tensor));
      } else if (number == 6 || number == 11) {
        if (model_.nodes[node].op_type == "Constant" && model_.nodes[node].domain.empty())
          return error_at(ErrorCode::file_invalid, text_of("byte {}", f.field.whole.begin),
                          "a Constant holds a graph; it may hold one value");
        model_.nodes[node].graphs.push_back(static_cast<uint32_t>(model_.graphs.size()));
        TRY_VOID(this->graph(f.field, graph, node, field.whole));
      } else if (number == 22 || number == 23) {
        for (Fields s(skeleton_, f.field.payload); s.next();) {
          Tensor tensor;
          if (s.field.number == 1 || s.field.number == 2) TRY_VOID(read_foreign(s.field, tensor));
        }
      }
    }
    model_.nodes[node].attributes.push_back(out);
    return {};
  }

  // The node's output names its tensor: the output's definition becomes the tensor's.
  Status constant(const Field& field, uint32_t graph, uint32_t node) {
    TRY_VOID(count_item());
    const std::string_view name = model_.nodes[node].outputs[0];
    Tensor& tensor = model_.tensors.emplace_back();
    TRY_VOID(read_tensor(skeleton_, field.payload, tensor));
    tensor.name = name;
    tensor.graph = graph;
    tensor.node = node;
    tensor.whole = field.whole;
    for (const Attribute& other : model_.nodes[node].attributes)
      if (other.name == "value")
        return error_at(ErrorCode::file_invalid, shown_name(name), "a Constant has two values");
    if (name.empty()) return {};
    // the output is the latest definition, because a Constant has no subgraphs
    for (size_t i = definitions_.size(); i-- > 0;)
      if (definitions_[i].name == name && definitions_[i].graph == graph) {
        definitions_[i].tensor = static_cast<uint32_t>(model_.tensors.size() - 1);
        break;
      }
    return {};
  }

  Status list_locations() {
    List<std::string_view> all;
    uint64_t bytes = 0;
    for (const Tensor& tensor : model_.tensors) {
      if (!tensor.is_external()) continue;
      all.push_back(tensor.location);
      bytes += tensor.end - tensor.begin;
      if (bytes > kMaxExternalBytes)
        return error_at(ErrorCode::file_too_large, shown_name(tensor.name),
                        "with this tensor external data exceed {} bytes", kMaxExternalBytes);
    }
    for (const uint32_t i : sorted_by_name(all.size(), [&](uint32_t k) { return all[k]; }))
      if (model_.locations.empty() || model_.locations.back() != all[i]) model_.locations.push_back(all[i]);
    return {};
  }

  Model& model_;
  const Skeleton& skeleton_;
  List<Definition> definitions_;
  uint32_t items_ = 0;
};

}  // namespace

const Attribute* Node::find(std::string_view attribute) const noexcept {
  for (const Attribute& a : attributes)
    if (a.name == attribute) return &a;
  return nullptr;
}

uint64_t Model::opset() const noexcept {
  for (const OpsetImport& import : opsets)
    if (import.domain.empty()) return import.version;
  return 0;
}

bool Model::has_name(std::string_view name) const noexcept {
  size_t low = 0, high = names.size();
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (names[middle] < name)
      low = middle + 1;
    else
      high = middle;
  }
  return low < names.size() && names[low] == name;
}

Result<Model> read_model(std::unique_ptr<const Skeleton> skeleton) {
  Model model;
  model.skeleton = std::move(skeleton);
  TRY_VOID(Reader(model).run());
  return model;
}

Status check_external(const Model& model, std::string_view location, uint64_t file_bytes) {
  for (const Tensor& tensor : model.tensors)
    if (tensor.location == location && tensor.end > file_bytes)
      return error_at(
          ErrorCode::file_truncated, shown_name(tensor.name),
          "its data end at byte {} of {q}, which has {}: at least {} bytes are missing. Download the file again",
          tensor.end, location, file_bytes, tensor.end - file_bytes);
  return {};
}

}  // namespace wasmquant::onnx
