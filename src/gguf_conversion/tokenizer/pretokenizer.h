// llama.cpp's names for a byte-level tokenizer's way of splitting text into words (tokenizer.ggml.pre).
#pragma once
#include <string>
#include <string_view>

#include "core/json.h"

namespace wasmquant::conversion {

/// By the pre_tokenizer of tokenizer.json; empty if llama.cpp lacks it.
std::string_view pretokenizer_name(const json::Value& pre_tokenizer);

/// The other way, also by the names of tokenizers that split alike: the pre_tokenizer of tokenizer.json, as JSON text; "null" if unknown.
std::string pretokenizer_json(std::string_view name);

}  // namespace wasmquant::conversion
