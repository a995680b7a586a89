// tokenizer.json of the tokenizers library. A vocabulary may have 250,000 tokens and half a million merges, so those
// two are stored flat; the rest becomes a tree.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "core/json.h"
#include "core/list.h"
#include "core/order.h"
#include "core/result.h"
#include "formats/gguf/gguf_metadata.h"

namespace wasmquant::conversion {

/// A parsed tokenizer.json.
struct TokenizerJson {
  struct Token {
    uint32_t id = 0;
    uint32_t begin = 0, bytes = 0;  // its text, in `texts`
    float score = 0;                // Unigram: log probability
  };
  json::Value tree;  // model.vocab and model.merges are null
  std::string texts;
  List<Token> tokens;                                // of model.vocab, in its order; ids may leave gaps
  gguf::ArrayBuilder merges{gguf::ValueType::text};  // "left right"

  std::string_view text(const Token& token) const noexcept {
    return std::string_view(texts).substr(token.begin, token.bytes);
  }
};

/// Errors: json-invalid.
Result<TokenizerJson> read_tokenizer_json(std::string_view text);

/// Calls `visit` for `value`, or, if it is a "Sequence" with a list called `parts`, for each element of that list.
void each_part(const json::Value& value, const char* parts, const CallableRef<void(const json::Value&)>& visit);

/// Whether tokens are made of bytes, each written as a character.
bool splits_bytes(const TokenizerJson& tokenizer);
/// Its text, which BPE has and Unigram has by its number; empty: none.
std::string unknown_token(const TokenizerJson& tokenizer);
/// Whether a space goes before a text.
bool adds_space_prefix(const TokenizerJson& tokenizer);

}  // namespace wasmquant::conversion
