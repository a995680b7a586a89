// config.json of a model for a forward pass: any text is either refused or gives sizes that hold together, also after they
// were packed. Any bytes as a packed architecture: what is accepted holds together, too.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "core/json.h"
#include "model/block_weights.h"
#include "pipeline/forward/packed_architecture.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace wasmquant;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  static const std::string head = packed_architecture({}).substr(0, 5);
  if (const auto packed = read_packed_architecture(head + std::string(text))) {
    const auto again = read_packed_architecture(packed_architecture(*packed));
    if (!again || packed_architecture(*again) != packed_architecture(*packed)) std::abort();
  }
  const auto config = json::parse(text);
  if (!config) return 0;
  const auto found = model::read_architecture(*config);
  if (!found) return 0;
  const bool holds = found->heads % found->kv_heads == 0 && found->head_dim % 2 == 0 &&
                     found->is_sliding.size() == found->layers && found->hidden > 0;
  if (!holds || !read_packed_architecture(packed_architecture(*found))) std::abort();
  for (const model::BlockWeight& weight : model::block_weights(*found))
    if (weight.columns == 0) std::abort();
  return 0;
}
