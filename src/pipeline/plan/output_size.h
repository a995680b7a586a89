// The size of a plan's files compared with the model's.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

#include "core/diagnostic.h"
#include "pipeline/model_index/model_index.h"

namespace wasmquant {

/// A preset and the bytes of the files that it makes.
struct SizedPreset {
  std::string_view preset;  // "": none
  uint64_t bytes = 0;
};

/// Whether files are larger than the model's by more than 0.1 %, which a few bytes of metadata are not.
bool is_larger(uint64_t bytes, uint64_t model_bytes) noexcept;

/// Presets that make a model smaller, best first: llama.cpp's recipes for GGUF.
std::span<const std::string_view> shrinking_presets(bool takes_recipes) noexcept;

/// The warning about files of `bytes` in all, more than the model's, with the preset to use instead.
Diagnostic larger_output_warning(const ModelIndex& model, uint64_t bytes, std::string_view format, SizedPreset smaller);

}  // namespace wasmquant
