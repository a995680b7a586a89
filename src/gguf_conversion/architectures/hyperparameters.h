// config.json to the keys "<architecture>.*" of GGUF metadata.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/json.h"
#include "core/result.h"
#include "formats/gguf/gguf_metadata.h"
#include "gguf_conversion/architectures/family.h"

namespace wasmquant::conversion {

/// The values that determine the layout of tensors.
struct Hyperparameters {
  uint32_t layers = 0, heads = 0, key_value_heads = 0, head_width = 0, experts = 0;
};

/// A number that the model has as a tensor, under its name.
struct NamedNumber {
  std::string_view name;
  float value = 0;
};

/// Writes the keys and returns what the rest of a conversion needs. Errors: argument-invalid naming a missing or
/// impossible key of config.json; format-unsupported for features without a key in llama.cpp.
Result<Hyperparameters> write_hyperparameters(const json::Value& config, const Family& family,
                                              gguf::Metadata& metadata);

/// Writes the keys of the family's architecture that only config.json tells: before those of all, which they replace. Errors:
/// argument-invalid naming the key of config.json.
Status write_own_keys(const json::Value& config, const Family& family, gguf::Metadata& metadata);

/// Writes its other keys, which need those of all, the tokenizer's or numbers among the tensors. Errors: as above, and
/// tensor-missing.
Status write_dependent_keys(const json::Value& config, const Family& family, const Hyperparameters& parameters,
                            std::span<const NamedNumber> numbers, gguf::Metadata& metadata);

/// The factors by which Llama 3.1 divides its RoPE frequencies (tensor rope_freqs.weight), one per pair of a head:
/// little-endian float32. Empty if config.json has no such scaling.
std::string rope_factors(const json::Value& config, uint32_t head_width);

}  // namespace wasmquant::conversion
