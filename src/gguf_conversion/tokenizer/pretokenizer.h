// How llama.cpp calls the way a byte-level tokenizer cuts text into words (tokenizer.ggml.pre).
#pragma once
#include <string_view>

#include "core/json.h"

namespace wasmquant::conversion {

/// By the pre_tokenizer of tokenizer.json; empty when it is none that llama.cpp has.
std::string_view pretokenizer_name(const json::Value& pre_tokenizer);

}  // namespace wasmquant::conversion
