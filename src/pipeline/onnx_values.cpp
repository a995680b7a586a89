#include "pipeline/onnx_values.h"

namespace wasmquant {
namespace {

template <class Items, class Name>
json::Array names_of(const Items& items, Name&& name) {
  json::Array out;
  for (const auto& item : items) out.emplace_back(name(item));
  return out;
}

constexpr auto kItself = [](std::string_view name) { return name; };

}  // namespace

json::Value layer_values(const OnnxIndex& index) {
  const onnx::Model& model = index.model();
  json::Array layers;
  for (const conversion::OnnxModelWeight& weight : index.weights())
    for (const onnx::Consumer& consumer : model.tensors[weight.tensor].consumers) {
      if (!conversion::takes_static(model, consumer)) continue;
      const onnx::Node& node = model.nodes[consumer.node];
      json::Value row;
      row.set("layer", weight.layer);
      row.set("input", node.inputs[0]);
      row.set("output", node.outputs[0]);
      row.set("nested", node.graph > 0);
      layers.push_back(std::move(row));
    }
  const onnx::Graph& graph = model.graphs[0];
  json::Value out;
  out.set("layers", std::move(layers));
  out.set("inputs", names_of(graph.inputs, [](const onnx::Input& input) { return input.name; }));
  out.set("outputs", names_of(graph.outputs, kItself));
  out.set("locations", names_of(model.locations, kItself));
  return out;
}

}  // namespace wasmquant
