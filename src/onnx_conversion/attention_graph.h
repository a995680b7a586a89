// Attention by ONNX Runtime's operators or, for heads that these do not take, by ONNX's own; of decoders with a cache. Query head h
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

/// The operators of attention.
enum class AttentionKind : uint8_t {
  group_query,  // GroupQueryAttention, for decoders whose heads have a multiple of 8
  multi_head,   // MultiHeadAttention, for encoders with as many keys as queries
  products      // MatMul and Softmax
};
constexpr AttentionKind attention_kind(const model::Architecture& a) noexcept {
  if (!a.is_encoder) return a.head_dim % 8 == 0 ? AttentionKind::group_query : AttentionKind::products;
  return a.heads == a.kv_heads && a.scales.attention_cap == 0 ? AttentionKind::multi_head : AttentionKind::products;
}

/// float [batch, tokens, heads * head_dim]. Of products the bias is [batch, 1 or kv_heads, 1 or heads of a group, 1 or tokens, keys]. Without names of
/// past values there is no cache.
Value attended(const model::Architecture& architecture, const AttentionValues& values, GraphText& graph,
               ModuleGraph& modules);

}  // namespace wasmquant::conversion
