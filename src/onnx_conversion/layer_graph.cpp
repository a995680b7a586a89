// The order of model/block.cpp.
#include "onnx_conversion/layer_graph.h"

#include "core/message.h"
#include "model/block_weights.h"
#include "onnx_graph/onnx_editor.h"
#include "onnx_graph/onnx_nodes.h"

namespace wasmquant::conversion {

using model::ModelPart;

Value LayerGraph::linear(Value x, ModelPart part, uint64_t rows, uint64_t columns) {
  return modules_.linear(x, path_of(part), part, rows, columns);
}

Value LayerGraph::norm(Value x, ModelPart part) { return modules_.norm(x, path_of(part), part, a_.hidden); }

Value LayerGraph::output(Value attended) { return linear(attended, ModelPart::o, a_.hidden, a_.attended_columns()); }

Value LayerGraph::layer(uint32_t number, const std::string& path, Value x) {
  path_ = path;
  graph_.enter(path);
  if (model::norms_sums(a_)) return post_normed(number, x);
  const Value seen = model::norms_input(a_, number) ? norm(x, ModelPart::input_norm) : x;
  const Value change = output(attend(number, seen));
  const Value after = added(x, change, ModelPart::attention_post_norm);
  Value fed = a_.is_parallel ? seen : after;
  if (a_.names.has(ModelPart::feed_forward_norm)) fed = norm(a_.is_parallel ? x : after, ModelPart::feed_forward_norm);
  return added(after, feed_forward(fed), ModelPart::feed_forward_post_norm);
}

Value LayerGraph::post_normed(uint32_t number, Value x) {
  const Value attended = output(attend(number, x));
  const Value middle = norm(graph_.node("Add", {x, attended}), ModelPart::attention_post_norm);
  return norm(graph_.node("Add", {middle, feed_forward(middle)}), ModelPart::feed_forward_post_norm);
}

Value LayerGraph::added(Value x, Value change, ModelPart post_norm) {
  if (a_.names.has(post_norm)) change = norm(change, post_norm);
  return graph_.node("Add", {x, modules_.scaled(change, a_.scales.residual)});
}

// q, k and v in one matrix, one after another or by key head.
LayerGraph::Heads LayerGraph::split_heads(Value x) {
  const bool is_in_order = model::fused_queries(a_) == model::Fused::in_order;
  const ModelPart part = is_in_order ? ModelPart::qkv : ModelPart::heads_qkv;
  const auto queries = static_cast<int64_t>(a_.query_columns()), keys = static_cast<int64_t>(a_.key_columns());
  const Value all = linear(x, part, static_cast<uint64_t>(queries + 2 * keys), a_.hidden);
  if (is_in_order) {
    const int64_t lengths[] = {queries, keys, keys};
    List<Value> parts = modules_.split(all, lengths);
    return {parts[0], parts[1], parts[2]};
  }
  const int64_t groups = a_.kv_heads, dim = a_.head_dim, lengths[] = {queries / groups, dim, dim};
  const Value grouped = graph_.node("Reshape", {all, graph_.integers({0, 0, groups, queries / groups + 2 * dim})});
  const List<Value> parts = modules_.split(grouped, lengths);
  const auto whole = [&](Value heads) { return graph_.node("Reshape", {heads, graph_.integers({0, 0, -1})}); };
  return {whole(parts[0]), whole(parts[1]), whole(parts[2])};
}

LayerGraph::Heads LayerGraph::project(Value x) {
  Heads heads;
  if (model::fused_queries(a_) != model::Fused::none)
    heads = split_heads(x);
  else
    heads = {linear(x, ModelPart::q, a_.query_columns(), a_.hidden),
             linear(x, ModelPart::k, a_.key_columns(), a_.hidden),
             linear(x, ModelPart::v, a_.key_columns(), a_.hidden)};
  if (a_.scales.qkv_clip > 0)
    for (Value* const values : {&heads.q, &heads.k, &heads.v})
      *values = graph_.node("Clip", {*values, graph_.number(-a_.scales.qkv_clip), graph_.number(a_.scales.qkv_clip)});
  return heads;
}

Value LayerGraph::head_norm(Value x, ModelPart part, uint32_t heads) {
  const uint64_t columns = uint64_t{heads} * a_.head_dim;
  if (a_.norms.over_heads) return modules_.norm(x, path_of(part), part, columns);
  const Value split = graph_.node("Reshape", {x, graph_.integers({0, 0, int64_t{heads}, int64_t{a_.head_dim}})});
  const Value normed = modules_.norm(split, path_of(part), part, a_.head_dim);
  return graph_.node("Reshape", {normed, graph_.integers({0, 0, static_cast<int64_t>(columns)})});
}

// Norm and rotation of queries or keys.
Value LayerGraph::positioned(uint32_t number, Value x, ModelPart part, uint32_t heads) {
  const bool has_norm = a_.names.has(part);
  Value y = has_norm && !a_.norms.behind_rope ? head_norm(x, part, heads) : x;
  if (a_.is_rotated[number]) {
    const bool slides = a_.is_sliding[number];
    const RotaryAngles& angles = slides ? sequence_.rotation.window_angles : sequence_.rotation.angles;
    const model::Rope& rope = slides ? a_.sliding_rope : a_.rope;
    y = graph_.microsoft("RotaryEmbedding", {y, sequence_.rotation.rows, angles.cosine, angles.sine},
                         {{"num_heads", int64_t{heads}},
                          {"rotary_embedding_dim", int64_t{rope.dimensions(a_.rope_dim())}},
                          {"interleaved", int64_t{rope.is_pairs}}});
  }
  if (has_norm && a_.norms.behind_rope) y = head_norm(y, part, heads);
  if (part == ModelPart::q_norm && !sequence_.rotation.query_factor.empty())
    y = graph_.node("Mul", {y, sequence_.rotation.query_factor});
  return y;
}

Value LayerGraph::attend(uint32_t number, Value x) {
  const Heads heads = project(x);
  AttentionValues values = cache_of(number);
  values.q = positioned(number, heads.q, ModelPart::q_norm, a_.heads);
  values.k = positioned(number, heads.k, ModelPart::k_norm, a_.kv_heads);
  values.v = heads.v;
  return attended(a_, values, graph_, modules_);
}

// What attention reads apart from queries, keys and values, with inputs and outputs of the graph.
AttentionValues LayerGraph::cache_of(uint32_t number) {
  AttentionValues values;
  values.bias = a_.is_sliding[number] ? sequence_.window_bias : sequence_.bias;
  values.last_keys = sequence_.last_keys;
  values.key_count = sequence_.key_count;
  if (a_.is_encoder) return values;
  const auto add = [&](std::string_view what, Value& past, Value& present) {
    past = graph_.named(text_of("past_key_values.{}.{}", number, what));
    present = graph_.named(text_of("present.{}.{}", number, what));
    const GraphAxis before[] = {{"batch_size"}, {"", a_.kv_heads}, {"past_sequence_length"}, {"", a_.head_dim}};
    const GraphAxis after[] = {{"batch_size"}, {"", a_.kv_heads}, {"total_sequence_length"}, {"", a_.head_dim}};
    graph_.input(past, kFloat32, before);
    graph_.output(present, kFloat32, after);
  };
  add("key", values.past_key, values.present_key);
  add("value", values.past_value, values.present_value);
  return values;
}

Value LayerGraph::feed_forward(Value x) {
  const uint64_t wide = a_.intermediate;
  Value product;
  if (a_.names.has(ModelPart::gate_up)) {
    const int64_t lengths[] = {static_cast<int64_t>(wide), static_cast<int64_t>(wide)};
    const List<Value> halves = modules_.split(linear(x, ModelPart::gate_up, 2 * wide, a_.hidden), lengths);
    product = graph_.node("Mul", {modules_.activated(halves[0]), halves[1]});
  } else if (a_.names.has(ModelPart::gate)) {
    const Value gate = modules_.activated(linear(x, ModelPart::gate, wide, a_.hidden));
    product = graph_.node("Mul", {gate, linear(x, ModelPart::up, wide, a_.hidden)});
  } else {
    product = modules_.activated(linear(x, ModelPart::up, wide, a_.hidden));
  }
  return linear(product, ModelPart::down, a_.hidden, wide);
}

}  // namespace wasmquant::conversion
