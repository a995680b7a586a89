// Tokenizers of Hugging Face's folders to GGUF's metadata (tokenizer.*).
//   sentencepiece's tokenizer.model         llama (pair merging by score), t5 (unigram)
//   tokenizer.json: BPE over bytes          gpt2, with merges and the name of its pretokenizer
//                   BPE with byte fallback  llama, scores from the order of merges
//                   Unigram · WordPiece     t5 · bert
//   none of these                           no_vocab: the model loads, but only accepts token ids
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

#include "core/diagnostic.h"
#include "core/json.h"
#include "core/result.h"
#include "formats/gguf/gguf_metadata.h"
#include "gguf_conversion/tokenizer/chat_template.h"

namespace wasmquant::conversion {

/// Texts of the tokenizer's files.
struct TokenizerFiles {
  std::string_view tokenizer;         // tokenizer.json; empty: missing, likewise below
  std::string_view tokenizer_config;  // tokenizer_config.json
  ChatTemplateFiles templates;
  std::span<const uint8_t> sentencepiece;  // tokenizer.model
  bool has_byte_merges = false;            // of the family: BPE with tokens for bytes keeps its merges ("gemma4")
};

/// `rows` = tokens of the embedding; the vocabulary is padded or cut to that. Notes and warnings list what could not be
/// converted. Errors: json-invalid with file and byte, format-unsupported (more than 2^20 tokens).
Status write_tokenizer(const TokenizerFiles& files, const json::Value& config, uint64_t rows, gguf::Metadata& metadata,
                       DiagnosticList& diagnostics);

}  // namespace wasmquant::conversion
