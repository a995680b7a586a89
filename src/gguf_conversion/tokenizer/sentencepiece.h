// tokenizer.model of the sentencepiece library: a protocol buffer, ModelProto of sentencepiece_model.proto.
//   1 pieces: { 1 text, 2 score (float), 3 type }   2 trainer: { 3 model type }
//   3 normalizer: { 2 precompiled character map, 3 add dummy prefix, 4 remove extra whitespaces }
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

#include "core/list.h"
#include "core/result.h"

namespace wasmquant::conversion {

/// The fields used here.
struct SentencePieceModel {
  struct Piece {
    std::string_view text;
    float score = 0;
    uint32_t type = 1;  // that of GGUF's tokenizer.ggml.token_type
  };
  List<Piece> pieces;
  bool is_unigram = true;
  bool adds_dummy_prefix = true, removes_extra_whitespaces = true;
  std::string_view character_map;
};

/// Texts point into `bytes`. Errors: file-invalid with the byte; other tokenizers use the same file name.
Result<SentencePieceModel> read_sentencepiece(std::span<const uint8_t> bytes);

}  // namespace wasmquant::conversion
