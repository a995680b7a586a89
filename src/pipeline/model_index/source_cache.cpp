#include "pipeline/model_index/source_cache.h"

#include "families/config_blocks.h"
#include "families/module_path.h"
#include "pipeline/model_index/model_index.h"

namespace wasmquant {

SourceCache source_cache(const ModelIndex& model) {
  SourceCache cache;
  for (const ModelTensor& tensor : model.tensors())
    if (families::is_cache_scale(tensor.stored.name) && cache.scales++ == 0) cache.first = tensor.stored.name;
  const auto& config = model.config();
  if (!config) return cache;
  const List<ConfigBlock> blocks = config_blocks(*config);
  if (blocks.empty()) return cache;
  const json::Value& block = *blocks.front().value;
  cache.method = block["quant_method"].as_string();
  for (const char* key : {"kv_cache_scheme", "kv_cache_quant_config", "kv_cache_post_rope"}) {
    const json::Value& value = block[key];
    const bool says_something = value.is_object() ? !value.members().empty() : value.is_string() || value.as_bool();
    if (says_something) cache.scheme.set(key, value);
  }
  return cache;
}

}  // namespace wasmquant
