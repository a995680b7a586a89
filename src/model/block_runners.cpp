#include "model/block_runners.h"

namespace wasmquant::model {
namespace {

bool is_alike(const Architecture& architecture, uint32_t a, uint32_t b) noexcept {
  const LayerSizes& sizes = architecture.sizes;
  const bool has_heads =
      sizes.head_dims.empty() || (sizes.head_dims[a] == sizes.head_dims[b] && sizes.kv_heads[a] == sizes.kv_heads[b] &&
                                  sizes.has_values[a] == sizes.has_values[b]);
  const bool reads_own = keys_of(architecture, a) == a;
  return has_heads && (sizes.widths.empty() || sizes.widths[a] == sizes.widths[b]) &&
         reads_own == (keys_of(architecture, b) == b) && is_decoding(architecture, a) == is_decoding(architecture, b) &&
         sees_encoded(architecture, a) == sees_encoded(architecture, b);
}

}  // namespace

BlockRunners::BlockRunners(const Architecture& architecture, size_t longest) {
  List<uint32_t> firsts;
  for (uint32_t layer = 0; layer < architecture.layers; ++layer) {
    size_t kind = 0;
    while (kind < firsts.size() && !is_alike(architecture, firsts[kind], layer)) ++kind;
    if (kind == firsts.size()) {
      firsts.push_back(layer);
      kinds_.push_back(std::make_unique<const Architecture>(like_layer(architecture, layer)));
      runners_.push_back(std::make_unique<BlockRunner>(*kinds_.back(), longest));
    }
    numbers_.push_back(static_cast<uint8_t>(kind));
  }
}

}  // namespace wasmquant::model
