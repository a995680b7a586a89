// Which tokens begin, end and pad a text, and whether llama.cpp adds them automatically.
#pragma once
#include <string_view>

#include "core/json.h"
#include "formats/gguf/gguf_metadata.h"
#include "gguf_conversion/tokenizer/vocabulary.h"

namespace wasmquant::conversion {

/// `tokenizer` is tokenizer.json, `settings` tokenizer_config.json; either may be null.
void write_special_tokens(const json::Value& tokenizer, const json::Value& settings, const json::Value& config,
                          const Vocabulary& vocabulary, gguf::Metadata& metadata);

}  // namespace wasmquant::conversion
