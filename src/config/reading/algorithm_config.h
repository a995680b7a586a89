// The rules of Quark's algorithm configs (spec quark 1.5). Algorithms that this version does not apply are reported;
// configs that no version could apply are errors.
#pragma once
#include "config/reading/object_reader.h"
#include "config/spec/spec.h"

namespace wasmquant::config {

/// Fields that Quark reads and ignores in every algorithm, a|b.
inline constexpr std::string_view kIgnoredAlgorithmFields = "num_attention_heads|num_key_value_heads";

/// The config with names of algorithms in lower case, as the table of algorithms spells them.
json::Value with_known_algorithm_names(json::Value config);

/// Checks every config in the list (or the one object) at `key`. `weights`: the global config, whose bits, groups and
/// symmetry older configs repeat and must not contradict. `cache_before_rope`: the kv cache is quantized before RoPE.
void check_algorithms(const ObjectReader& in, const char* key, const LayerConfig& weights, bool cache_before_rope);

}  // namespace wasmquant::config
