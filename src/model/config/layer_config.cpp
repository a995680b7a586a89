// One reader for each way in which layers differ.
#include "model/config/layer_config.h"

#include <algorithm>

#include "core/message.h"
#include "numeric/normal_quantile.h"

namespace wasmquant::model {
namespace {

// Beyond any model.
constexpr uint32_t kWidest = 1 << 24;

// A size from config.json; `otherwise` without its key.
uint32_t size_of(const FamilyFacts& facts, std::string_view field, std::string_view usual, uint32_t otherwise) {
  const uint32_t found = facts.count(field, usual);
  return found > 0 ? found : otherwise;
}

// per_layer_config has what differs, by the number of the layer, instead of keys for all layers that see every key.
void read_heads(const json::Value& config, const FamilyFacts& facts, Architecture& out) {
  LayerSizes& sizes = out.sizes;
  const bool has_values = !facts.flag("keys_are_values");
  const json::Value& of_layers = config["per_layer_config"];
  const uint32_t dim = size_of(facts, "full_head_dim", "", out.head_dim);
  const uint32_t heads = has_values ? out.kv_heads : size_of(facts, "full_kv_heads", "", out.kv_heads);
  for (uint32_t layer = 0; layer < out.layers; ++layer) {
    const bool is_full = !out.is_sliding[layer];
    const json::Value& own = of_layers[std::to_string(layer).c_str()];
    const auto size = [&](const char* key, uint32_t otherwise, uint32_t of_full) {
      if (!of_layers.is_object()) return is_full ? of_full : otherwise;
      const double value = own[key].as_number();
      return value >= 1 && value <= kWidest ? static_cast<uint32_t>(value) : otherwise;
    };
    sizes.head_dims.push_back(size("head_dim", out.head_dim, dim));
    sizes.kv_heads.push_back(size("num_key_value_heads", out.kv_heads, heads));
    sizes.has_values.push_back(has_values || !is_full);
  }
}

// The last layers read keys and values of the last one before them that sees as much.
Status read_sharing(const FamilyFacts& facts, Architecture& out) {
  const uint32_t shared = std::min(facts.count("shared_layers", ""), out.layers), first = out.layers - shared;
  if (shared == 0) return {};
  for (uint32_t layer = 0; layer < out.layers; ++layer) {
    uint32_t from = layer;
    if (layer >= first) {
      from = first;
      while (from > 0 && out.is_sliding[from - 1] != out.is_sliding[layer]) --from;
      if (from-- == 0)
        return error_at(ErrorCode::config_invalid, "/num_kv_shared_layers",
                        "{}: layer {} has none before them whose keys and values it could read", shared, layer);
    }
    out.sizes.keys_of.push_back(from);
  }
  return {};
}

// Without a list, the first ten layers of a model with more than ten are sparse.
Status read_gates(const json::Value& config, Architecture& out) {
  constexpr uint32_t kSparseLayers = 10;
  constexpr float kUsualShare = 0.95f;
  const json::Value& shares = config["activation_sparsity_pattern"];
  if (!shares.is_null() && shares.items().size() != out.layers)
    return error_at(ErrorCode::config_invalid, "/activation_sparsity_pattern",
                    "must have a number for each of {} layers", out.layers);
  for (uint32_t layer = 0; layer < out.layers; ++layer) {
    const float usual = out.layers > kSparseLayers && layer < kSparseLayers ? kUsualShare : 0;
    const float share = shares.is_null() ? usual : static_cast<float>(shares.items()[layer].as_number());
    if (!(share >= 0 && share < 1))
      return error_at(ErrorCode::config_invalid, "/activation_sparsity_pattern", "{} is no share of zeros", share);
    out.streams.gate_limits.push_back(share > 0 ? normal_quantile(share) : Streams::kNoLimit);
  }
  return {};
}

Status read_streams(const json::Value& config, const FamilyFacts& facts, Architecture& out) {
  if (!out.names.has(ModelPart::stream_router)) return {};
  Streams& streams = out.streams;
  streams.count = facts.count("", "altup_num_inputs", 4);
  streams.active = facts.count("", "altup_active_idx");
  streams.low_rank = size_of(facts, "", "laurel_rank", 64);
  if (streams.count < 2 || streams.count > Streams::kMost || streams.active >= streams.count)
    return error_at(ErrorCode::config_invalid, "/altup_num_inputs",
                    "{} with {} as the active one; 2 to {} are possible", streams.count, streams.active,
                    Streams::kMost);
  return read_gates(config, out);
}

bool streams_hold_together(const Architecture& a) noexcept {
  const Streams& streams = a.streams;
  const bool has_several = a.names.has(ModelPart::stream_router);
  return streams.count >= 1 && streams.count <= Streams::kMost && has_several == (streams.count > 1) &&
         streams.active < streams.count && a.names.has(ModelPart::low_rank_in) == (streams.low_rank > 0) &&
         streams.low_rank <= kWidest && (streams.gate_limits.empty() || streams.gate_limits.size() == a.layers);
}

}  // namespace

Status read_widths(const json::Array& widths, Architecture& out) {
  bool fits = widths.size() == out.layers;
  for (const json::Value& width : widths) {
    fits = fits && width.is_integer() && width.as_integer() >= 1 && width.as_integer() <= kWidest;
    out.sizes.widths.push_back(fits ? static_cast<uint32_t>(width.as_integer()) : 0);
  }
  if (!fits)
    return error_at(ErrorCode::config_invalid, "/intermediate_size", "must have a whole number for each of {} layers",
                    out.layers);
  out.intermediate = out.sizes.widths.front();
  return {};
}

Status read_layer_sizes(const json::Value& config, const FamilyFacts& facts, Architecture& out) {
  if (out.names.has(ModelPart::layer_gate)) {
    out.layer_inputs.width = size_of(facts, "", "hidden_size_per_layer_input", 256);
    out.layer_inputs.tokens = size_of(facts, "", "vocab_size_per_layer_input", out.vocabulary);
  }
  if (out.layer_inputs.width > 0 && out.names.has(ModelPart::experts_norm))
    return error_at(ErrorCode::not_implemented, "/hidden_size_per_layer_input",
                    "the forward pass of {} does not support inputs of layers that have experts", out.family);
  if (facts.number("full_head_dim")) read_heads(config, facts, out);
  TRY_VOID(read_streams(config, facts, out));
  TRY_VOID(read_sharing(facts, out));
  if (facts.flag("double_wide"))
    for (uint32_t layer = 0; layer < out.layers; ++layer)
      out.sizes.widths.push_back(layer < out.sizes.keys_of.size() && out.sizes.keys_of[layer] != layer
                                     ? 2 * out.intermediate
                                     : out.intermediate);
  if (!sizes_hold_together(out))
    return error_at(ErrorCode::config_invalid, "/per_layer_config", "has sizes of heads that no layer has");
  return {};
}

bool sizes_hold_together(const Architecture& a) noexcept {
  const LayerSizes& sizes = a.sizes;
  if (!streams_hold_together(a)) return false;
  const auto fits = [&](size_t count) { return count == 0 || count == a.layers; };
  const auto is_size = [](uint32_t size) { return size >= 1 && size <= kWidest; };
  if (!fits(sizes.head_dims.size()) || sizes.kv_heads.size() != sizes.head_dims.size() ||
      sizes.has_values.size() != sizes.head_dims.size() || !fits(sizes.widths.size()) || !fits(sizes.keys_of.size()))
    return false;
  if (a.names.has(ModelPart::layer_gate) != (a.layer_inputs.width > 0) ||
      (a.layer_inputs.width > 0 && (!is_size(a.layer_inputs.width) || !is_size(a.layer_inputs.tokens) ||
                                    uint64_t{a.layers} * a.layer_inputs.width > kWidest)))
    return false;
  for (size_t i = 0; i < sizes.head_dims.size(); ++i)
    if (!is_size(sizes.head_dims[i]) || sizes.head_dims[i] % 2 != 0 || !is_size(sizes.kv_heads[i]) ||
        a.heads % sizes.kv_heads[i] != 0 || uint64_t{a.heads} * sizes.head_dims[i] > kWidest)
      return false;
  for (const uint32_t width : sizes.widths)
    if (!is_size(width)) return false;
  for (uint32_t layer = 0; layer < sizes.keys_of.size(); ++layer) {
    const uint32_t from = sizes.keys_of[layer];
    if (from > layer || sizes.keys_of[from] != from || a.is_sliding[from] != a.is_sliding[layer]) return false;
    if (!sizes.head_dims.empty() &&
        (sizes.head_dims[from] != sizes.head_dims[layer] || sizes.kv_heads[from] != sizes.kv_heads[layer]))
      return false;
  }
  return true;
}

}  // namespace wasmquant::model
