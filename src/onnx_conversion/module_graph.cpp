#include "onnx_conversion/module_graph.h"

namespace wasmquant::conversion {

using kernels::Activation;
using model::ModelPart;

Value ModuleGraph::product(Value x, Value matrix) {
  constexpr int64_t kPerm[] = {1, 0};
  return graph_.node("MatMul", {x, graph_.node("Transpose", {matrix}, {{"perm", std::span(kPerm)}})});
}

Value ModuleGraph::linear(Value x, const std::string& module, ModelPart part, uint64_t rows, uint64_t columns) {
  const std::string name = module + ".weight";
  Value y = architecture_.is_transposed ? graph_.node("MatMul", {x, weights_(name, {columns, rows})})
                                        : product(x, weights_(name, {rows, columns}));
  if (architecture_.names.has_bias(part)) y = graph_.node("Add", {y, weights_(module + ".bias", {rows})});
  return y;
}

Value ModuleGraph::norm(Value x, const std::string& module, ModelPart part, uint64_t columns) {
  const model::Architecture& a = architecture_;
  Value weight;
  if (a.names.has_weight(part)) {
    weight = weights_(module + ".weight", {columns});
    if (a.norms.plus_one) weight = graph_.node("Add", {weight, graph_.number(1)});
  } else {
    const std::vector<float> ones(columns, 1.0f);
    weight = graph_.numbers(ones, std::span(&columns, 1));
  }
  const auto epsilon = static_cast<float>(a.norms.epsilon);
  if (!a.norms.subtract_mean)
    return graph_.node("SimplifiedLayerNormalization", {x, weight}, {{"axis", int64_t{-1}}, {"epsilon", epsilon}});
  const Value bias = a.names.has_bias(part) ? weights_(module + ".bias", {columns}) : Value();
  if (bias.empty())
    return graph_.node("LayerNormalization", {x, weight}, {{"axis", int64_t{-1}}, {"epsilon", epsilon}});
  return graph_.node("LayerNormalization", {x, weight, bias}, {{"axis", int64_t{-1}}, {"epsilon", epsilon}});
}

Value ModuleGraph::scaled(Value x, float factor) {
  return factor == 1 ? x : graph_.node("Mul", {x, graph_.number(factor)});
}

Value ModuleGraph::capped(Value x, float cap) {
  if (cap <= 0) return x;
  const Value limit = graph_.number(cap);
  return graph_.node("Mul", {graph_.node("Tanh", {graph_.node("Div", {x, limit})}), limit});
}

Value ModuleGraph::activated(Value x) {
  switch (architecture_.activation) {
    case Activation::silu:
      return graph_.node("Mul", {x, graph_.node("Sigmoid", {x})});
    case Activation::gelu_tanh:
      return graph_.microsoft("FastGelu", {x});
    case Activation::gelu:
      return graph_.microsoft("Gelu", {x});
    case Activation::relu:
      return graph_.node("Relu", {x});
    case Activation::squared_relu: {
      const Value positive = graph_.node("Relu", {x});
      return graph_.node("Mul", {positive, positive});
    }
  }
  return x;
}

List<Value> ModuleGraph::split(Value x, std::span<const int64_t> lengths, int64_t axis) {
  List<Value> names;
  for (size_t i = 0; i < lengths.size(); ++i) names.push_back(graph_.fresh("part"));
  const List<std::string_view> outputs(names.begin(), names.end());
  graph_.node_to("Split", "", {x, graph_.integers(lengths)}, {outputs.data(), outputs.size()}, {{"axis", axis}});
  return names;
}

}  // namespace wasmquant::conversion
