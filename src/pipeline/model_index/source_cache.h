// What a quantized source says of its key-value cache: stored scales, and the scheme in its config.
#pragma once
#include <cstdint>
#include <string>

#include "core/json.h"

namespace wasmquant {

class ModelIndex;

struct SourceCache {
  uint64_t scales = 0;  // tensors that families::is_cache_scale names
  std::string first;    // the first of them
  std::string method;   // quant_method of the source, "" without a config block
  json::Value scheme;   // an object of the members of its block that describe the cache; null if there are none
};

/// Of config.json, or the block of its text_config.
SourceCache source_cache(const ModelIndex& model);

}  // namespace wasmquant
