// The rules of Quark's algorithm configs (spec quark 1.5). Those that this version does not apply are told; what could
// not be applied by any version is an error all the same.
#pragma once
#include "config/reading/object_reader.h"
#include "config/spec/spec.h"

namespace wasmquant::config {

/// Every config in the list (or the one object) at `key`. `weights`: the global config, which the bits, groups and
/// symmetry that older configs repeat must not contradict. `cache_before_rope`: the kv cache is quantized before the
/// rotary embedding.
void check_algorithms(const ObjectReader& in, const char* key, const LayerConfig& weights, bool cache_before_rope);

}  // namespace wasmquant::config
