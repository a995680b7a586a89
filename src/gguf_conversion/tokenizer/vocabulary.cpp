// Tokens, scores and types, from sentencepiece and tokenizer.json, with the special cases of llama.cpp.
#include "gguf_conversion/tokenizer/vocabulary.h"

#include <algorithm>
#include <utility>

#include "core/message.h"
#include "core/order.h"

namespace wasmquant::conversion {
namespace {

constexpr std::string_view kWordStart = "\u2581";  // sentencepiece's space
constexpr float kUnusedScore = -10000, kAddedScore = -1000;

// Special tokens that models forget to mark: a control token never occurs in text.
bool looks_special(std::string_view text) {
  for (const std::string_view name : {"<pad>", "<mask>", "<2mass>", "[@BOS@]"})
    if (text == name) return true;
  return (text.starts_with("<|") && text.ends_with("|>")) ||
         (text.starts_with("<\uFF5C") && text.ends_with("\uFF5C>")) ||
         (text.starts_with("<unused") && text.ends_with(">"));
}

std::string with_spaces(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const bool is_space = text.substr(i).starts_with(kWordStart);
    out += is_space ? ' ' : text[i];
    i += is_space ? kWordStart.size() : 1;
  }
  return out;
}

int hex_digit(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// The value of "<0x0A>"; -1 for other texts.
int byte_of(std::string_view text) noexcept {
  if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>') return -1;
  const int high = hex_digit(text[3]), low = hex_digit(text[4]);
  return high < 0 || low < 0 ? -1 : 16 * high + low;
}

}  // namespace

Vocabulary::Vocabulary(uint32_t size) : tokens_(size) {
  for (uint32_t i = 0; i < size; ++i) {
    tokens_[i].text = text_of("[PAD{}]", i);
    tokens_[i].score = kUnusedScore;
  }
}

Vocabulary::Token* Vocabulary::at(uint64_t id) noexcept {
  if (id < tokens_.size()) return &tokens_[static_cast<size_t>(id)];
  lost_end_ = std::max(lost_end_, id + 1);
  return nullptr;
}

void Vocabulary::add(const TokenizerJson& tokenizer) {
  for (const TokenizerJson::Token& from : tokenizer.tokens)
    if (Token* token = at(from.id)) *token = {std::string(tokenizer.text(from)), from.score, TokenType::normal};
}

void Vocabulary::add(const SentencePieceModel& model) {
  for (size_t i = 0; i < model.pieces.size(); ++i) {
    const SentencePieceModel::Piece& piece = model.pieces[i];
    if (Token* token = at(i)) *token = {std::string(piece.text), piece.score, static_cast<TokenType>(piece.type)};
  }
}

void Vocabulary::add_added(const json::Value& added_tokens) {
  for (const json::Value& token : added_tokens.items())
    if (token["id"].is_integer() && token["id"].as_integer() >= 0)
      add_one_added(static_cast<uint64_t>(token["id"].as_integer()), token);
  for (const auto& [key, token] : added_tokens.members()) {
    constexpr size_t kMaxDigits = 9;
    uint64_t id = 0;
    bool is_number = !key.empty() && key.size() <= kMaxDigits;
    for (const char c : key) {
      is_number = is_number && c >= '0' && c <= '9';
      id = 10 * id + static_cast<uint64_t>(c - '0');
    }
    if (is_number) add_one_added(id, token);
  }
}

void Vocabulary::add_one_added(uint64_t id, const json::Value& from) {
  const std::string& text = from["content"].as_string();
  Token* token = text.empty() ? nullptr : at(id);
  if (token == nullptr) return;
  const bool is_special = from["special"].as_bool() || looks_special(text);
  if (is_special && (token->type == TokenType::unknown || token->type == TokenType::control)) return;
  *token = {is_special ? text : with_spaces(text), kAddedScore,
            is_special ? TokenType::control : TokenType::user_defined};
  added_.push_back(static_cast<uint32_t>(id));
}

void Vocabulary::score_by_merges(TokenizerJson& tokenizer) {
  const auto name_of = [&](uint32_t i) -> std::string_view { return tokens_[i].text; };
  const List<uint32_t> order = sorted_by_name(tokens_.size(), name_of);
  const gguf::KeyValue merges = std::move(tokenizer.merges).finish({});
  gguf::ArrayView view(&merges);
  const auto last = -static_cast<float>(view.count());
  List<uint8_t> is_made(tokens_.size());
  std::string joined;
  for (uint64_t rank = 0; rank < view.count(); ++rank) {
    const std::string_view merge = view.next_text();
    const size_t space = merge.find(' ');
    if (space == merge.npos) continue;
    joined.assign(merge.substr(0, space));
    joined += merge.substr(space + 1);
    const size_t place = place_of(joined, order, name_of);
    if (place == order.size() || tokens_[order[place]].text != joined || is_made[order[place]] != 0) continue;
    is_made[order[place]] = 1;
    tokens_[order[place]].score = -static_cast<float>(rank);
  }
  for (size_t i = 0; i < tokens_.size(); ++i)
    if (is_made[i] == 0 && tokens_[i].type == TokenType::normal) tokens_[i].score = last;
}

void Vocabulary::mark_bytes(std::string_view unknown_token) {
  for (Token& token : tokens_) {
    if (byte_of(token.text) >= 0) token.type = TokenType::byte;
    if (!unknown_token.empty() && token.text == unknown_token) token.type = TokenType::unknown;
  }
}

void Vocabulary::show(std::string_view text) {
  for (Token& token : tokens_)
    if (token.text == text) token.type = TokenType::user_defined;
}

void Vocabulary::score_alike() {
  for (Token& token : tokens_) token.score = kAddedScore;
}

void Vocabulary::mark_word_starts() {
  for (Token& token : tokens_) {
    if (token.type == TokenType::control) continue;
    token.text = token.text.starts_with("##") ? token.text.substr(2) : std::string(kWordStart) + token.text;
  }
}

bool Vocabulary::has_all_bytes() const noexcept {
  bool has[256] = {};
  int count = 0;
  for (const Token& token : tokens_) {
    const int byte = token.type == TokenType::byte ? byte_of(token.text) : -1;
    if (byte < 0 || has[byte]) continue;
    has[byte] = true;
    ++count;
  }
  return count == 256;
}

std::optional<uint32_t> Vocabulary::id_of(std::string_view text) const {
  for (const uint32_t id : added_)
    if (tokens_[id].text == text) return id;
  for (size_t i = 0; i < tokens_.size(); ++i)
    if (tokens_[i].type != TokenType::unused && tokens_[i].text == text) return static_cast<uint32_t>(i);
  return std::nullopt;
}

void Vocabulary::write(gguf::Metadata& metadata, bool with_scores) const {
  gguf::ArrayBuilder texts(gguf::ValueType::text), scores(gguf::ValueType::f32), types(gguf::ValueType::i32);
  for (const Token& token : tokens_) {
    texts.add_text(token.text);
    scores.add_f32(token.score);
    types.add_i32(static_cast<int32_t>(token.type));
  }
  metadata.set(std::move(texts).finish("tokenizer.ggml.tokens"));
  if (with_scores) metadata.set(std::move(scores).finish("tokenizer.ggml.scores"));
  metadata.set(std::move(types).finish("tokenizer.ggml.token_type"));
}

}  // namespace wasmquant::conversion
