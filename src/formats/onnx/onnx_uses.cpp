#include "formats/onnx/onnx_uses.h"

#include <algorithm>

#include "core/message.h"
#include "core/order.h"
#include "formats/tensor_name.h"

namespace wasmquant::onnx {
namespace {

Use use_of(const Node& node, uint32_t input) noexcept {
  if (is_quantized_operator(node.domain, node.op_type)) return Use::quantized;
  // Operators with special uses have no subgraphs; a node that has some is kept whole, because edits inside need it.
  if (!node.domain.empty() || !node.graphs.empty()) return Use::other;
  struct Row {
    std::string_view op_type;
    uint32_t input;
    Use use;
  };
  constexpr Row kRows[] = {
      {"MatMul", 1, Use::mat_mul}, {"Gemm", 1, Use::gemm},
      {"Conv", 1, Use::conv},      {"ConvTranspose", 1, Use::conv_transpose},
      {"Gather", 0, Use::gather},  {"LSTM", 1, Use::recurrent},
      {"LSTM", 2, Use::recurrent}, {"GRU", 1, Use::recurrent},
      {"GRU", 2, Use::recurrent},  {"RNN", 1, Use::recurrent},
      {"RNN", 2, Use::recurrent},
  };
  for (const Row& row : kRows)
    if (row.input == input && row.op_type == node.op_type) return row.use;
  return Use::other;
}

class Scopes {
 public:
  Scopes(Model& model, const List<Definition>& definitions) : model_(model), definitions_(definitions) {
    order_ = sorted_order(definitions.size(), [&](uint32_t a, uint32_t b) {
      const Definition &left = definitions[a], &right = definitions[b];
      if (left.name != right.name) return left.name < right.name;
      if (left.graph != right.graph) return left.graph < right.graph;
      return left.is_input() && !right.is_input();
    });
  }

  // Subgraphs follow their graph, so a name is visible in [graph, last]. Ranges of one name must be disjoint.
  Status check() {
    uint32_t last = 0;
    for (size_t i = 0; i < order_.size(); ++i) {
      const Definition& here = definitions_[order_[i]];
      const bool is_first = i == 0 || definitions_[order_[i - 1]].name != here.name;
      if (!is_first && here.graph <= last) {
        const Definition& before = definitions_[order_[i - 1]];
        // An initializer may provide an input's default.
        const bool is_default = before.is_input() && before.graph == here.graph && here.tensor != kNone &&
                                model_.tensors[here.tensor].node == kNone;
        if (!is_default)
          return error_at(ErrorCode::tensor_duplicate, shown_name(here.name), "this name is defined twice");
        model_.tensors[here.tensor].input = before.input;
      }
      const uint32_t end = model_.graphs[here.graph].last;
      last = is_first ? end : std::max(last, end);
      model_.names.push_back(here.name);
    }
    return {};
  }

  // The tensor that `name` refers to in `graph`.
  uint32_t find(std::string_view name, uint32_t graph) const {
    size_t low = 0, high = order_.size();  // the first definition after (name, graph)
    while (low < high) {
      const size_t middle = (low + high) / 2;
      const Definition& here = definitions_[order_[middle]];
      if (here.name < name || (here.name == name && here.graph <= graph))
        low = middle + 1;
      else
        high = middle;
    }
    if (low == 0) return kNone;
    const Definition& found = definitions_[order_[low - 1]];
    return found.name == name && graph <= model_.graphs[found.graph].last ? found.tensor : kNone;
  }

 private:
  Model& model_;
  const List<Definition>& definitions_;
  List<uint32_t> order_;
};

}  // namespace

bool is_quantized_operator(std::string_view domain, std::string_view op_type) noexcept {
  const auto has = [&](std::string_view part) { return op_type.find(part) != op_type.npos; };
  // QuantizeLinear, DequantizeLinear, GatherBlockQuantized, DynamicQuantizeMatMul; MatMulInteger, ConvInteger
  if (has("uant") || has("Integer")) return true;
  if (op_type.starts_with("QLinear")) return true;
  if (domain.empty()) return false;
  return op_type == "MatMulNBits" || op_type == "MatMulBnb4" || op_type == "QGemm" || op_type == "QAttention" ||
         op_type == "QMoE" || op_type.starts_with("QOrdered") || op_type.starts_with("QEmbed");
}

Status find_uses(Model& model, const List<Definition>& definitions) {
  Scopes scopes(model, definitions);
  TRY_VOID(scopes.check());
  for (uint32_t n = 0; n < model.nodes.size(); ++n) {
    const Node& node = model.nodes[n];
    if (is_quantized_operator(node.domain, node.op_type)) ++model.quantized_nodes;
    for (uint32_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i].empty()) continue;
      const uint32_t tensor = scopes.find(node.inputs[i], node.graph);
      if (tensor != kNone) model.tensors[tensor].consumers.push_back({n, i, use_of(node, i)});
    }
  }
  for (uint32_t g = 0; g < model.graphs.size(); ++g)
    for (const std::string_view output : model.graphs[g].outputs) {
      const uint32_t tensor = scopes.find(output, g);
      if (tensor != kNone) model.tensors[tensor].is_output = true;
    }
  return {};
}

}  // namespace wasmquant::onnx
