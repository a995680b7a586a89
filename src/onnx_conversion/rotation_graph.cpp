#include "onnx_conversion/rotation_graph.h"

#include "model/steps/rotary.h"

namespace wasmquant::conversion {
namespace {

using model::Rope;

Value as_float(Value integers, GraphText& graph) { return graph.node("Cast", {integers}, {{"to", int64_t{kFloat32}}}); }

Value frequencies_of(const Rope& rope, uint32_t dimensions, bool is_long, GraphText& graph) {
  const std::vector<float> values = model::rotary_frequencies(rope, dimensions, is_long);
  const uint64_t shape[] = {1, values.size()};
  return graph.numbers(values, shape);
}

RotaryAngles angles_of(const Rope& rope, uint32_t dimensions, Value positions, GraphText& graph) {
  Value frequency = frequencies_of(rope, dimensions, false, graph);
  if (rope.scaling == Rope::Scaling::longrope) {
    const Value last = graph.node("ReduceMax", {positions}, {{"keepdims", int64_t{0}}});
    const Value least = graph.integer(static_cast<int64_t>(rope.original_positions));
    const Value is_long = graph.node("GreaterOrEqual", {last, least});
    frequency = graph.node("Where", {is_long, frequencies_of(rope, dimensions, true, graph), frequency});
  }
  const Value flat = graph.node("Reshape", {positions, graph.integers({-1, 1})});
  const Value angle = graph.node("Mul", {as_float(flat, graph), frequency});
  const auto scaled = [&](Value values) {
    return rope.amplitude == 1 ? values : graph.node("Mul", {values, graph.number(static_cast<float>(rope.amplitude))});
  };
  return {scaled(graph.node("Cos", {angle})), scaled(graph.node("Sin", {angle}))};
}

// Queries far behind the original positions are longer (Llama 4).
Value query_factor(const model::QueryGrowth& of, Value positions, GraphText& graph) {
  const Value span = graph.number(static_cast<float>(of.span));
  const Value spans = graph.node("Floor", {graph.node("Div", {as_float(positions, graph), span})});
  const Value log = graph.node("Log", {graph.node("Add", {spans, graph.number(1)})});
  const Value growth = graph.node("Mul", {log, graph.number(static_cast<float>(of.rate))});
  return graph.node("Unsqueeze", {graph.node("Add", {growth, graph.number(1)}), graph.integers({2})});
}

}  // namespace

Rotation rotation_of(const model::Architecture& a, Value positions, GraphText& graph) {
  Rotation out;
  const Value all = graph.node("Size", {positions});
  const Value count = graph.node("Range", {graph.integer(0), all, graph.integer(1)});
  out.rows = graph.node("Reshape", {count, graph.node("Shape", {positions})});
  bool is_full = false, slides = false;
  for (uint32_t layer = 0; layer < a.layers; ++layer)
    if (a.is_rotated[layer]) (a.is_sliding[layer] ? slides : is_full) = true;
  if (is_full) out.angles = angles_of(a.rope, a.rope_dim(), positions, graph);
  if (slides) out.window_angles = angles_of(a.sliding_rope, a.rope_dim(), positions, graph);
  if (a.query_growth.rate > 0) out.query_factor = query_factor(a.query_growth, positions, graph);
  return out;
}

}  // namespace wasmquant::conversion
