// A vocabulary in GGUF's terms, one token per embedding row, and its sources.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/json.h"
#include "core/list.h"
#include "formats/gguf/gguf_metadata.h"
#include "gguf_conversion/tokenizer/sentencepiece.h"
#include "gguf_conversion/tokenizer/tokenizer_json.h"

namespace wasmquant::conversion {

/// Numbers of tokenizer.ggml.token_type; sentencepiece's are the same.
enum class TokenType : int32_t { normal = 1, unknown, control, user_defined, unused, byte };

/// Collects a vocabulary and writes it.
class Vocabulary {
 public:
  /// All tokens unused and called [PAD<id>].
  explicit Vocabulary(uint32_t size);

  /// Tokens of tokenizer.json's model. Those whose id is beyond the size are dropped.
  void add(const TokenizerJson& tokenizer);
  void add(const SentencePieceModel& model);
  /// Tokens added to a trained vocabulary: [{"id", "content", "special"}] or {"<id>": {"content", "special"}}.
  void add_added(const json::Value& added_tokens);

  /// Scores with which llama.cpp's sentencepiece tokenizer applies the merges in order: a token's score is minus the
  /// rank of the first merge that makes it.
  void score_by_merges(TokenizerJson& tokenizer);
  /// Marks "<0x0A>" and the like as bytes, and `unknown_token`, if given, as the unknown token.
  void mark_bytes(std::string_view unknown_token);
  /// A token with this text is one that programs show.
  void show(std::string_view text);
  /// The same score for every token.
  void score_alike();
  /// BERT's "##ing" continues a word, "ing" begins one; GGUF writes "ing" and "▁ing".
  void mark_word_starts();

  uint32_t size() const noexcept { return static_cast<uint32_t>(tokens_.size()); }
  /// Tokens from size() to lost_end() - 1 were dropped.
  uint64_t lost_end() const noexcept { return lost_end_; }
  bool has_all_bytes() const noexcept;
  /// The id of a text, nullopt if there is none. Added tokens take precedence.
  std::optional<uint32_t> id_of(std::string_view text) const;

  /// Writes tokenizer.ggml.tokens, token_type and, on demand, scores.
  void write(gguf::Metadata& metadata, bool with_scores) const;

 private:
  struct Token {
    std::string text;
    float score = 0;
    TokenType type = TokenType::unused;
  };
  void add_one_added(uint64_t id, const json::Value& token);
  Token* at(uint64_t id) noexcept;

  List<Token> tokens_;
  List<uint32_t> added_;
  uint64_t lost_end_ = 0;
};

}  // namespace wasmquant::conversion
