// config.json to the keys "<architecture>.*" of GGUF metadata.
#pragma once
#include <cstdint>
#include <string>

#include "core/json.h"
#include "core/result.h"
#include "formats/gguf/gguf_metadata.h"
#include "gguf_conversion/family.h"

namespace wasmquant::conversion {

/// What tensors are laid out by.
struct Hyperparameters {
  uint32_t layers = 0, heads = 0, key_value_heads = 0, head_width = 0;
};

/// Writes the keys and returns what the rest of a conversion needs. Errors: argument-invalid naming a key of
/// config.json that is missing or impossible; format-unsupported for what llama.cpp has no key for.
Result<Hyperparameters> write_hyperparameters(const json::Value& config, const Family& family,
                                              gguf::Metadata& metadata);

/// The factors that Llama 3.1's rotary embedding divides its frequencies by (tensor rope_freqs.weight), one for each
/// pair of a head: little-endian float32. Empty when config.json asks for no such scaling.
std::string rope_factors(const json::Value& config, uint32_t head_width);

}  // namespace wasmquant::conversion
