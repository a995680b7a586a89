// llama.cpp's name for a byte-level tokenizer's way of splitting text into words (tokenizer.ggml.pre).
#pragma once
#include <string_view>

#include "core/json.h"

namespace wasmquant::conversion {

/// By the pre_tokenizer of tokenizer.json; empty if llama.cpp lacks it.
std::string_view pretokenizer_name(const json::Value& pre_tokenizer);

}  // namespace wasmquant::conversion
