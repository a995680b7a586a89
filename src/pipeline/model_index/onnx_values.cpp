#include "pipeline/model_index/onnx_values.h"

#include "formats/onnx/onnx_value_type.h"

namespace wasmquant {
namespace {

template <class Items, class Name>
json::Array names_of(const Items& items, Name&& name) {
  json::Array out;
  for (const auto& item : items) out.emplace_back(name(item));
  return out;
}

// By graph input, in file order: whether an initializer is its default.
List<bool> defaults_of(const onnx::Model& model) {
  const List<onnx::Input>& inputs = model.graphs[0].inputs;
  List<bool> out(inputs.size());
  for (const onnx::Tensor& tensor : model.tensors) {
    if (tensor.graph != 0 || tensor.input.bytes() == 0) continue;
    const size_t at = first_after(inputs.size(), [&](size_t i) { return inputs[i].whole.begin < tensor.input.begin; });
    if (at < inputs.size()) out[at] = true;
  }
  return out;
}

json::Array inputs_of(const onnx::Model& model) {
  const List<bool> defaults = defaults_of(model);
  json::Array out;
  for (const onnx::Input& input : model.graphs[0].inputs) {
    const onnx::ValueType type = onnx::value_type_of(*model.skeleton, input.whole);
    json::Array shape;
    for (const onnx::Dimension& dimension : type.shape) {
      if (!dimension.name.empty())
        shape.emplace_back(dimension.name);
      else
        shape.emplace_back(dimension.size);
    }
    json::Value row;
    row.set("name", input.name);
    row.set("type", static_cast<int64_t>(type.data_type));
    if (type.has_shape) row.set("shape", std::move(shape));
    row.set("optional", static_cast<bool>(defaults[out.size()]));
    out.push_back(std::move(row));
  }
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
  out.set("inputs", inputs_of(model));
  out.set("outputs", names_of(graph.outputs, kItself));
  out.set("locations", names_of(model.locations, kItself));
  return out;
}

}  // namespace wasmquant
