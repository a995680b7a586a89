// Causal attention with a cache, by ONNX Runtime's GroupQueryAttention or, for heads that it does not take, by ONNX's own operators. Query head h
// reads key and value head h / (heads / kv_heads).
#pragma once
#include <string>

#include "onnx_conversion/module_graph.h"

namespace wasmquant::conversion {

/// Names of values.
struct AttentionValues {
  Value q, k,
      v;  // float [batch, tokens, heads * head_dim], of k and v kv_heads * head_dim; where they rotate, rotated
  Value past_key, past_value;        // float [batch, kv_heads, past, head_dim]
  Value present_key, present_value;  // those that are to be made: past and new
  Value bias;                        // added to the scores: [batch, 1 or heads, tokens, keys], or by groups
  Value last_keys, key_count;        // as GroupQueryAttention reads them
};

/// Whether heads are of a length that GroupQueryAttention takes.
constexpr bool has_group_query(const model::Architecture& architecture) noexcept {
  return architecture.head_dim % 8 == 0;
}

/// float [batch, tokens, heads * head_dim]. Without has_group_query() the bias is [batch, 1 or kv_heads, 1 or heads of a group, tokens, keys].
Value attended(const model::Architecture& architecture, const AttentionValues& values, GraphText& graph,
               ModuleGraph& modules);

}  // namespace wasmquant::conversion
