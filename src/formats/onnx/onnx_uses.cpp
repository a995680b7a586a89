// Scopes resolve names of nested graphs; a second pass lists the nodes that use each tensor.
#include "formats/onnx/onnx_uses.h"

#include <algorithm>

#include "core/message.h"
#include "core/order.h"
#include "formats/onnx/onnx_einsum.h"
#include "formats/onnx/onnx_views.h"
#include "formats/tensor_name.h"

namespace wasmquant::onnx {
namespace {

Use use_of(const Skeleton& skeleton, const Node& node, uint32_t input) {
  if (is_quantized_operator(node.domain, node.op_type)) return Use::quantized;
  // Operators with special uses have no subgraphs; a node that has some is kept whole, because edits inside need it.
  if (!node.graphs.empty()) return Use::other;
  if (node.op_type == "Einsum" && node.domain.empty() && node.inputs.size() == 2) {
    const Attribute* const equation = node.find("equation");
    return equation == nullptr ? Use::other : einsum_use(text_of(skeleton, *equation), input);
  }
  constexpr std::string_view kMicrosoft = "com.microsoft";
  struct Row {
    std::string_view op_type;
    uint32_t input;
    Use use;
    std::string_view domain = {};
  };
  constexpr Row kRows[] = {
      {"MatMul", 1, Use::mat_mul},
      {"Gemm", 1, Use::gemm},
      {"Conv", 1, Use::conv},
      {"ConvTranspose", 1, Use::conv_transpose},
      {"Gather", 0, Use::gather},
      {"LSTM", 1, Use::recurrent},
      {"LSTM", 2, Use::recurrent},
      {"GRU", 1, Use::recurrent},
      {"GRU", 2, Use::recurrent},
      {"RNN", 1, Use::recurrent},
      {"RNN", 2, Use::recurrent},
      {"FusedMatMul", 1, Use::fused_mat_mul, kMicrosoft},
      {"Attention", 1, Use::attention, kMicrosoft},
  };
  for (const Row& row : kRows)
    if (row.input == input && row.op_type == node.op_type && row.domain == node.domain) return row.use;
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

  // What `name` refers to in `graph`; null: nothing known.
  const Definition* find(std::string_view name, uint32_t graph) const {
    const size_t next = first_after(order_.size(), [&](size_t i) {
      const Definition& here = definitions_[order_[i]];
      return here.name < name || (here.name == name && here.graph <= graph);
    });
    if (next == 0) return nullptr;
    const Definition& found = definitions_[order_[next - 1]];
    return found.name == name && graph <= model_.graphs[found.graph].last ? &found : nullptr;
  }

 private:
  Model& model_;
  const List<Definition>& definitions_;
  List<uint32_t> order_;
};

class Uses {
 public:
  Uses(Model& model, const Scopes& scopes) : model_(model), scopes_(scopes), view_of_node_(model.nodes.size()) {
    for (uint32_t& view : view_of_node_) view = kNone;
  }

  void run() {
    // Nodes come after those whose outputs they read.
    for (uint32_t n = 0; n < model_.nodes.size(); ++n) {
      const Node& node = model_.nodes[n];
      for (uint32_t i = 0; i < node.inputs.size(); ++i) add(n, i);
      if (is_quantized_operator(node.domain, node.op_type) || reads_codes(node)) ++model_.quantized_nodes;
    }
    for (uint32_t g = 0; g < model_.graphs.size(); ++g)
      for (const std::string_view output : model_.graphs[g].outputs) {
        const Definition* const found = output.empty() ? nullptr : scopes_.find(output, g);
        if (found != nullptr && found->node != kNone) model_.nodes[found->node].add_reader(kNone);
        const Source source = source_of(found);
        if (source.view != kNone) model_.views[source.view].is_output = true;
        if (source.view == kNone && source.tensor != kNone) model_.tensors[source.tensor].is_output = true;
      }
  }

 private:
  // Cast of a matrix of bytes, or Gather of its rows: weights are written so for runtimes that lack other operators.
  bool reads_codes(const Node& node) const {
    if (!node.domain.empty() || node.inputs.empty() || (node.op_type != "Cast" && node.op_type != "Gather"))
      return false;
    const uint32_t source = node.origins[0].tensor;
    if (source == kNone) return false;
    const Tensor& tensor = model_.tensors[source];
    return tensor.shape.size() > 1 && (tensor.data_type == static_cast<uint32_t>(DataType::int8) ||
                                       tensor.data_type == static_cast<uint32_t>(DataType::uint8));
  }

  // A tensor, or a view of it.
  struct Source {
    uint32_t tensor = kNone, view = kNone;
  };
  Source source_of(const Definition* found) const {
    if (found == nullptr) return {};
    if (found->tensor != kNone) return {found->tensor, kNone};
    const uint32_t view = found->node == kNone ? kNone : view_of_node_[found->node];
    return view == kNone ? Source() : Source{model_.views[view].tensor, view};
  }

  void add(uint32_t n, uint32_t input) {
    Node& node = model_.nodes[n];
    const Definition* const found = node.inputs[input].empty() ? nullptr : scopes_.find(node.inputs[input], node.graph);
    Origin& origin = node.origins.emplace_back();
    if (found != nullptr) origin = {found->tensor, found->tensor == kNone ? found->node : kNone};
    if (origin.node != kNone) model_.nodes[origin.node].add_reader(n);
    const Source source = source_of(found);
    if (source.tensor == kNone) return;
    Use use = use_of(*model_.skeleton, node, input);
    if (use == Use::other && input == 0 && add_view(n, source)) use = Use::view;
    model_.tensors[source.tensor].consumers.push_back({n, input, use, source.view});
  }

  bool add_view(uint32_t n, const Source& source) {
    const Node& node = model_.nodes[n];
    Tensor& tensor = model_.tensors[source.tensor];
    if (!weight_dtype_of(tensor.data_type)) return false;
    std::optional<std::vector<int64_t>> wanted;
    const bool has_shape = node.op_type == "Reshape" || node.op_type == "Squeeze" || node.op_type == "Unsqueeze";
    if (has_shape && node.inputs.size() == 2) wanted = shape_in(node.inputs[1], node.graph);
    const View whole{.data_type = tensor.data_type, .shape = tensor.shape};
    auto view = view_of(*model_.skeleton, node, source.view == kNone ? whole : model_.views[source.view], wanted);
    if (!view) return false;
    view->tensor = source.tensor;
    view->parent = source.view;
    view->node = n;
    view->name = node.outputs[0];
    view_of_node_[n] = static_cast<uint32_t>(model_.views.size());
    tensor.views.push_back(view_of_node_[n]);
    model_.views.push_back(std::move(*view));
    return true;
  }

  // The integers of a constant: an initializer, or a Constant node.
  std::optional<std::vector<int64_t>> shape_in(std::string_view name, uint32_t graph) const {
    const Definition* const found = name.empty() ? nullptr : scopes_.find(name, graph);
    if (found == nullptr) return std::nullopt;
    if (found->tensor != kNone) return integers_of(model_, model_.tensors[found->tensor]);
    if (found->node == kNone || model_.nodes[found->node].op_type != "Constant") return std::nullopt;
    const Attribute* const values = model_.nodes[found->node].find("value_ints");
    return values == nullptr ? std::nullopt : integers_of(*model_.skeleton, *values);
  }

  Model& model_;
  const Scopes& scopes_;
  List<uint32_t> view_of_node_;
};

}  // namespace

bool is_quantized_operator(std::string_view domain, std::string_view op_type) noexcept {
  const auto has = [&](std::string_view part) { return op_type.find(part) != op_type.npos; };
  // QuantizeLinear, DequantizeLinear, GatherBlockQuantized, DynamicQuantizeMatMul; MatMulInteger, ConvInteger
  if (has("uant") || has("Integer")) return true;
  if (op_type.starts_with("QLinear")) return true;
  if (domain.empty()) return false;
  // MatMulNBits, MatMulFpQ4 and others: every longer name is a product with codes.
  if (op_type.starts_with("MatMul") && op_type.size() > std::string_view("MatMul").size()) return true;
  return op_type == "QGemm" || op_type == "QAttention" || op_type == "QMoE" || op_type.starts_with("QOrdered") ||
         op_type.starts_with("QEmbed");
}

Status find_uses(Model& model, const List<Definition>& definitions) {
  Scopes scopes(model, definitions);
  TRY_VOID(scopes.check());
  Uses(model, scopes).run();
  return {};
}

}  // namespace wasmquant::onnx
