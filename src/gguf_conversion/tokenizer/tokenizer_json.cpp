// model.vocab is {"text": id, …} or, for Unigram, [["text", score], …]; model.merges is ["left right", …] or, since
// tokenizers 0.20, [["left", "right"], …].
#include "gguf_conversion/tokenizer/tokenizer_json.h"

#include <utility>

#include "core/json_events.h"
#include "core/json_tree.h"
#include "core/message.h"

namespace wasmquant::conversion {
namespace {

using json::Event;
using json::EventKind;

constexpr uint64_t kMaxBytes = 256u << 20;
constexpr uint64_t kMaxTokenId = 1u << 24;  // far above any vocabulary

class TokenizerListener final : public json::Listener {
 public:
  explicit TokenizerListener(TokenizerJson& out) : out_(out) {}

  Status on(const Event& event) override {
    if (section_ != Section::other) return in_section(event);
    if (event.kind == EventKind::key) {
      if (event.depth == 1) in_model_ = event.text == "model";
      is_vocab_ = in_model_ && event.depth == 2 && event.text == "vocab";
      is_merges_ = in_model_ && event.depth == 2 && event.text == "merges";
    } else if (event.depth == 2 && (is_vocab_ || is_merges_) &&
               (event.kind == EventKind::object_begin || event.kind == EventKind::array_begin)) {
      section_ = is_vocab_ ? Section::vocab : Section::merges;
      is_list_ = event.kind == EventKind::array_begin;
      Event nothing;
      nothing.depth = event.depth;
      return tree_.on(nothing);
    }
    return tree_.on(event);
  }

  json::Value& tree() noexcept { return tree_.root(); }

 private:
  enum class Section : uint8_t { other, vocab, merges };

  static Error invalid(const Event& event, const char* message) {
    return error_at(ErrorCode::json_invalid, text_of("byte {}", event.byte), "{}", message);
  }

  Status in_section(const Event& event) {
    if (event.depth == 2) {  // only its own end
      section_ = Section::other;
      is_vocab_ = is_merges_ = false;
      return {};
    }
    return section_ == Section::vocab ? vocab(event) : merge(event);
  }

  void add_token(std::string_view text) {
    out_.tokens.push_back({static_cast<uint32_t>(out_.tokens.size()), static_cast<uint32_t>(out_.texts.size()),
                           static_cast<uint32_t>(text.size())});
    out_.texts += text;
  }

  Status vocab(const Event& event) {
    const bool is_number = event.kind == EventKind::integer || event.kind == EventKind::real;
    if (is_list_) {
      if (event.depth == 3 && (event.kind == EventKind::array_begin || event.kind == EventKind::array_end)) return {};
      if (event.depth == 4 && event.kind == EventKind::string) {
        add_token(event.text);
        return {};
      }
      if (event.depth == 4 && is_number && !out_.tokens.empty()) {
        const double magnitude = static_cast<double>(event.magnitude);
        const double whole = event.is_negative ? -magnitude : magnitude;
        out_.tokens.back().score = static_cast<float>(event.kind == EventKind::real ? event.real : whole);
        return {};
      }
    } else if (event.kind == EventKind::key) {
      add_token(event.text);
      return {};
    } else if (event.kind == EventKind::integer && !event.is_negative && event.magnitude <= kMaxTokenId) {
      out_.tokens.back().id = static_cast<uint32_t>(event.magnitude);
      return {};
    }
    return invalid(event, "model.vocab is neither an object of token numbers nor a list of [token, score]");
  }

  Status merge(const Event& event) {
    if (event.kind == EventKind::string && event.depth == 3) {
      out_.merges.add_text(event.text);
      return {};
    }
    if (event.depth == 3 && event.kind == EventKind::array_begin) {
      pair_.clear();
      halves_ = 0;
      return {};
    }
    if (event.depth == 3 && event.kind == EventKind::array_end && halves_ == 2) {
      out_.merges.add_text(pair_);
      return {};
    }
    if (event.kind != EventKind::string || event.depth != 4 || halves_ == 2)
      return invalid(event, "model.merges is neither a list of \"left right\" nor of [left, right]");
    if (halves_++ == 1) pair_ += ' ';
    for (const char c : event.text) {
      if (c == ' ')
        pair_ += "\u0120";  // what the byte-level alphabet writes for a space
      else
        pair_ += c;
    }
    return {};
  }

  TokenizerJson& out_;
  json::TreeBuilder tree_;
  Section section_ = Section::other;
  bool in_model_ = false, is_vocab_ = false, is_merges_ = false;
  bool is_list_ = false;  // the open section
  std::string pair_;
  int halves_ = 0;
};

}  // namespace

void each_part(const json::Value& value, const char* parts, const CallableRef<void(const json::Value&)>& visit) {
  const json::Value& list = value[parts];
  for (const json::Value& part : list.items()) visit(part);
  if (!list.is_array() && value.is_object()) visit(value);
}

Result<TokenizerJson> read_tokenizer_json(std::string_view text) {
  TokenizerJson out;
  TokenizerListener listener(out);
  const json::Limits limits{.max_bytes = kMaxBytes, .max_depth = 64, .max_nodes = ~uint64_t{0}};
  TRY_VOID(json::parse_events(text, limits, listener));
  out.tree = std::move(listener.tree());
  return out;
}

bool splits_bytes(const TokenizerJson& tokenizer) {
  bool found = false;
  each_part(tokenizer.tree["pre_tokenizer"], "pretokenizers",
            [&](const json::Value& part) { found = found || part["type"].as_string() == "ByteLevel"; });
  return found;
}

std::string unknown_token(const TokenizerJson& tokenizer) {
  const json::Value& model = tokenizer.tree["model"];
  if (model["unk_token"].is_string()) return model["unk_token"].as_string();
  const json::Value& id = model["unk_id"];
  if (!id.is_integer()) return {};
  for (const TokenizerJson::Token& token : tokenizer.tokens)
    if (static_cast<int64_t>(token.id) == id.as_integer()) return std::string(tokenizer.text(token));
  return {};
}

bool adds_space_prefix(const TokenizerJson& tokenizer) {
  bool adds = false;
  each_part(tokenizer.tree["normalizer"], "normalizers",
            [&](const json::Value& part) { adds = adds || part["type"].as_string() == "Prepend"; });
  each_part(tokenizer.tree["pre_tokenizer"], "pretokenizers", [&](const json::Value& part) {
    if (part["type"].as_string() != "Metaspace") return;
    const json::Value* old = part.find("add_prefix_space");
    adds = part["prepend_scheme"].is_string() ? part["prepend_scheme"].as_string() != "never"
                                              : old == nullptr || old->as_bool();
  });
  return adds;
}

}  // namespace wasmquant::conversion
