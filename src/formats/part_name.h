// Names of a model's files when it has several, as transformers and llama.cpp write them: model-00002-of-00003.safetensors, with
// a variant model-00002-of-00003.fp16.safetensors.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace wasmquant {

/// What such a name says; the texts point into it.
struct PartName {
  std::string_view stem;       // what precedes the number: "model-"
  uint32_t number = 1;         // at most `count`; from 1, or from 0 as some tools count
  uint32_t count = 1;          // at most 99999
  std::string_view extension;  // what follows the count: ".gguf", ".fp16.safetensors"
  uint8_t digits = 5;          // at least, of both numbers
};
/// Nullopt for other names.
std::optional<PartName> read_part_name(std::string_view name) noexcept;

/// Stem "a/b-", number 2, count 3, extension ".gguf": "a/b-00002-of-00003.gguf".
std::string part_name(const PartName& name);

}  // namespace wasmquant
