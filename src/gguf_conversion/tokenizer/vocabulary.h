// A vocabulary in GGUF's terms, one token a row of the embedding, and where its tokens come from.
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

class Vocabulary {
 public:
  /// All tokens unused and called [PAD<id>].
  explicit Vocabulary(uint32_t size);

  /// Tokens of tokenizer.json's model. Those whose id is beyond the size are lost.
  void add(const TokenizerJson& tokenizer);
  void add(const SentencePieceModel& model);
  /// Tokens added to a trained vocabulary: [{"id", "content", "special"}] or {"<id>": {"content", "special"}}.
  void add_added(const json::Value& added_tokens);

  /// Scores by which llama.cpp's sentencepiece tokenizer joins what the merges join, in their order: that of a token is
  /// minus the rank of the first merge that makes it.
  void score_by_merges(TokenizerJson& tokenizer);
  /// "<0x0A>" and the like become bytes; `unknown_token`, when there is one, the unknown token.
  void mark_bytes(std::string_view unknown_token);
  /// BERT's "##ing" goes on with a word, "ing" begins one; GGUF writes "ing" and "▁ing".
  void mark_word_starts();

  uint32_t size() const noexcept { return static_cast<uint32_t>(tokens_.size()); }
  /// Tokens from size() to lost_end() - 1 were there, but have no place.
  uint64_t lost_end() const noexcept { return lost_end_; }
  bool has_all_bytes() const noexcept;
  /// The id of a text; nothing when no token has it. Added tokens go before.
  std::optional<uint32_t> id_of(std::string_view text) const;

  /// tokenizer.ggml.tokens, token_type and, on demand, scores.
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
