#include "onnx_conversion/attention_graph.h"

#include "onnx_graph/onnx_editor.h"

namespace wasmquant::conversion {
namespace {

Value by_group_query(const model::Architecture& a, const AttentionValues& values, GraphText& graph) {
  const Value y = graph.fresh("attended");
  const Value outputs[] = {y, values.present_key, values.present_value};
  graph.node_to("GroupQueryAttention", kMicrosoft,
                {values.q, values.k, values.v, values.past_key, values.past_value, values.last_keys, values.key_count,
                 "", "", "", values.bias},
                outputs,
                {{"num_heads", int64_t{a.heads}},
                 {"kv_num_heads", int64_t{a.kv_heads}},
                 {"scale", a.scales.attention},
                 {"softcap", a.scales.attention_cap}});
  return y;
}

Value by_multi_head(const model::Architecture& a, const AttentionValues& values, GraphText& graph) {
  return graph.microsoft("MultiHeadAttention", {values.q, values.k, values.v, "", "", values.bias},
                         {{"num_heads", int64_t{a.heads}}, {"scale", a.scales.attention}});
}

Value transposed(Value x, std::initializer_list<int64_t> perm, GraphText& graph) {
  return graph.node("Transpose", {x}, {{"perm", std::span<const int64_t>(perm.begin(), perm.size())}});
}

// Keys or values with those of the cache, [batch, kv_heads, keys, head_dim].
Value with_past(const model::Architecture& a, Value x, Value past, Value present, GraphText& graph) {
  const Value heads = graph.node("Reshape", {x, graph.integers({0, 0, int64_t{a.kv_heads}, int64_t{a.head_dim}})});
  const Value own = transposed(heads, {0, 2, 1, 3}, graph);
  if (past.empty()) return own;
  const Value outputs[] = {present};
  graph.node_to("Concat", "", {past, own}, outputs, {{"axis", int64_t{2}}});
  return present;
}

}  // namespace

Value attended(const model::Architecture& a, const AttentionValues& values, GraphText& graph, ModuleGraph& modules) {
  if (attention_kind(a) == AttentionKind::group_query) return by_group_query(a, values, graph);
  if (attention_kind(a) == AttentionKind::multi_head) return by_multi_head(a, values, graph);
  const int64_t groups = a.kv_heads, dim = a.head_dim, group = a.heads / a.kv_heads;
  const Value keys = with_past(a, values.k, values.past_key, values.present_key, graph);
  const Value all = with_past(a, values.v, values.past_value, values.present_value, graph);
  const Value per_group = graph.integers({2});
  const Value split = graph.node("Reshape", {values.q, graph.integers({0, 0, groups, group, dim})});
  const Value q = modules.scaled(transposed(split, {0, 2, 3, 1, 4}, graph), a.scales.attention);
  const Value k = graph.node("Unsqueeze", {transposed(keys, {0, 1, 3, 2}, graph), per_group});
  const Value scores = modules.capped(graph.node("MatMul", {q, k}), a.scales.attention_cap);
  const Value shares = graph.node("Softmax", {graph.node("Add", {scores, values.bias})}, {{"axis", int64_t{-1}}});
  const Value y = graph.node("MatMul", {shares, graph.node("Unsqueeze", {all, per_group})});
  return graph.node("Reshape", {transposed(y, {0, 3, 1, 2, 4}, graph), graph.integers({0, 0, groups * group * dim})});
}

}  // namespace wasmquant::conversion
