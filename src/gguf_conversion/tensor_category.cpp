#include "gguf_conversion/tensor_category.h"

namespace wasmquant::conversion {
namespace {

struct CategoryRow {
  std::string_view part;
  TensorCategory category;
};
// The first row whose text occurs in the name.
constexpr CategoryRow kParts[] = {
    {"attn_qkv.weight", TensorCategory::query_key_value},
    {"attn_kv_b.weight", TensorCategory::key_value_b},
    {"attn_v.weight", TensorCategory::value},
    {"attn_k.weight", TensorCategory::key},
    {"attn_q.weight", TensorCategory::query},
    {"attn_output.weight", TensorCategory::attention_output},
    {"ffn_up", TensorCategory::feed_forward_up},
    {"ffn_gate", TensorCategory::feed_forward_gate},
    {"ffn_down", TensorCategory::feed_forward_down},
};

constexpr std::string_view kKeptNames[] = {"position_embd.weight", "token_types.weight"};
constexpr std::string_view kKeptParts[] = {
    "_norm.weight",
    "ffn_gate_inp.weight",      // routers of experts
    "ffn_gate_tid2eid.weight",  // tables, no weights
    "altup",
    "laurel",
    "per_layer_model_proj",
    "ssm_conv1d",  // short convolutions
    "shortconv.conv.weight",
    "indexer.k_proj.weight",
    "indexer.q_proj.weight",
    "time_mix_first.weight",  // RWKV
    "time_mix_w0.weight",
    "time_mix_w1.weight",
    "time_mix_w2.weight",
    "time_mix_v0.weight",
    "time_mix_v1.weight",
    "time_mix_v2.weight",
    "time_mix_a0.weight",
    "time_mix_a1.weight",
    "time_mix_a2.weight",
    "time_mix_g1.weight",
    "time_mix_g2.weight",
    "time_mix_decay_w1.weight",
    "time_mix_decay_w2.weight",
    "time_mix_lerp_fused.weight",
    "attn_rel_b.weight",  // relative positions
    ".position_embd",     // vision and audio
    "sam.pos_embd",
    "sam.neck.",
    "sam.net_",
    ".rel_pos",
    ".patch_embd",
    ".patch_merger",
    "a.rvq.codebook",
    "mm.a.code_embd",
};

bool has(std::string_view name, std::string_view part) noexcept { return name.find(part) != name.npos; }

}  // namespace

TensorCategory category_of(std::string_view name) noexcept {
  if (name == "output.weight") return TensorCategory::output;
  if (name == "token_embd.weight" || name == "per_layer_token_embd.weight") return TensorCategory::token_embedding;
  for (const CategoryRow& row : kParts)
    if (has(name, row.part)) return row.category;
  return TensorCategory::other;
}

int64_t layer_of(std::string_view name) noexcept {
  constexpr std::string_view kPrefix = "blk.";
  constexpr size_t kMaxDigits = 9;
  if (!name.starts_with(kPrefix)) return -1;
  int64_t layer = 0;
  size_t at = kPrefix.size();
  for (; at < name.size() && name[at] >= '0' && name[at] <= '9' && at < kPrefix.size() + kMaxDigits; ++at)
    layer = 10 * layer + (name[at] - '0');
  return at == kPrefix.size() ? -1 : layer;
}

bool is_quantized(std::string_view name, std::span<const uint64_t> shape) noexcept {
  if (shape.size() < 2 || !name.ends_with("weight")) return false;
  bool is_matrix = false;
  for (const uint64_t dimension : shape.first(shape.size() - 1)) is_matrix = is_matrix || dimension > 1;
  if (!is_matrix) return false;
  for (const std::string_view kept : kKeptNames)
    if (name == kept) return false;
  for (const std::string_view part : kKeptParts)
    if (has(name, part)) return false;
  return true;
}

}  // namespace wasmquant::conversion
