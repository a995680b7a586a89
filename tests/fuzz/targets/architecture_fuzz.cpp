// config.json of a model for a forward pass: any text is either refused or gives sizes that hold together.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/json.h"
#include "model/block_weights.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace wasmquant;
  const auto config = json::parse({reinterpret_cast<const char*>(data), size});
  if (!config) return 0;
  const auto found = model::read_architecture(*config);
  if (!found) return 0;
  const bool holds = found->heads % found->kv_heads == 0 && found->head_dim % 2 == 0 &&
                     found->is_sliding.size() == found->layers && found->hidden > 0;
  if (!holds) std::abort();
  for (const model::BlockWeight& weight : model::block_weights(*found))
    if (weight.columns == 0) std::abort();
  return 0;
}
