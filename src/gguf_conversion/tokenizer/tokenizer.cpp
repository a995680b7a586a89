// A writer that recognises the kind of tokenizer and sets its keys.
#include "gguf_conversion/tokenizer/tokenizer.h"

#include <string>
#include <utility>

#include "core/message.h"
#include "formats/gguf/gguf.h"
#include "gguf_conversion/tokenizer/pretokenizer.h"
#include "gguf_conversion/tokenizer/special_tokens.h"
#include "gguf_conversion/tokenizer/tokenizer_json.h"
#include "gguf_conversion/tokenizer/vocabulary.h"
#include "runtimes/llama_cpp/texts.h"

namespace wasmquant::conversion {
namespace {

constexpr const char* kAt = "tokenizer.json";

Error in_file(Error error, const char* file) {
  error.where = text_of("{}: {}", file, error.where);
  return error;
}

// Base64 of RFC 4648; stops at the first other character.
std::string decode_base64(std::string_view text) {
  std::string out;
  uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    int digit = -1;
    if (c >= 'A' && c <= 'Z') digit = c - 'A';
    if (c >= 'a' && c <= 'z') digit = c - 'a' + 26;
    if (c >= '0' && c <= '9') digit = c - '0' + 52;
    if (c == '+') digit = 62;
    if (c == '/') digit = 63;
    if (digit < 0) break;
    bits = bits << 6 | static_cast<uint32_t>(digit);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    out += static_cast<char>(bits >> count);
  }
  return out;
}

class TokenizerWriter {
 public:
  TokenizerWriter(const TokenizerFiles& files, const json::Value& config, uint32_t rows, gguf::Metadata& metadata,
                  DiagnosticList& diagnostics)
      : files_(files), config_(config), metadata_(metadata), diagnostics_(diagnostics), vocabulary_(rows) {}

  Status run() {
    if (!files_.tokenizer_config.empty()) {
      auto settings = json::parse(files_.tokenizer_config, json::kPython);
      if (!settings) return in_file(std::move(settings.error()), "tokenizer_config.json");
      settings_ = std::move(*settings);
    }
    if (!files_.tokenizer.empty()) {
      auto tokenizer = read_tokenizer_json(files_.tokenizer);
      if (!tokenizer) return in_file(std::move(tokenizer.error()), kAt);
      json_ = std::move(*tokenizer);
    }
    if (!from_sentencepiece() && !from_json()) {
      metadata_.set_text("tokenizer.ggml.model", "no_vocab");
      diagnostics_.warning("tokenizer-missing", kAt,
                           "found no tokenizer that GGUF supports; the file has none (no_vocab)",
                           "put tokenizer.json or tokenizer.model into the folder of the model");
      return {};
    }
    if (vocabulary_.lost_end() > 0)
      diagnostics_.warning("tokens-lost", kAt,
                           text_of("the embedding has {} rows; tokens beyond them, up to number {}, are left out",
                                   vocabulary_.size(), vocabulary_.lost_end() - 1));
    write_special_tokens(json_.tree, settings_, config_, vocabulary_, metadata_);
    return write_chat_templates(settings_, files_.templates, metadata_, diagnostics_);
  }

 private:
  void set_flag(const char* name, bool value) { metadata_.set_bool(text_of("tokenizer.ggml.{}", name), value); }
  void write_kind(std::string_view model, std::string_view pretokenizer, bool with_scores) {
    metadata_.set_text("tokenizer.ggml.model", model);
    metadata_.set_text("tokenizer.ggml.pre", pretokenizer);
    vocabulary_.write(metadata_, with_scores);
  }
  void write_character_map(std::string_view map) {
    if (map.empty() || map.size() > gguf::kMaxArrayItems) return;
    gguf::ArrayBuilder builder(gguf::ValueType::u8);
    for (const char c : map) builder.add_u8(static_cast<uint8_t>(c));
    metadata_.set(std::move(builder).finish("tokenizer.ggml.precompiled_charsmap"));
  }
  void add_added_tokens() {
    vocabulary_.add_added(settings_["added_tokens_decoder"]);
    vocabulary_.add_added(json_.tree["added_tokens"]);
  }

  bool from_sentencepiece() {
    if (files_.sentencepiece.empty()) return false;
    const auto model = read_sentencepiece(files_.sentencepiece);
    if (!model) return false;  // tiktoken uses the same file name
    vocabulary_.add(*model);
    add_added_tokens();
    if (model->is_unigram) {
      set_flag("remove_extra_whitespaces", model->removes_extra_whitespaces);
      write_character_map(model->character_map);
    } else {
      check_bytes();
    }
    set_flag("add_space_prefix", model->adds_dummy_prefix);
    write_kind(model->is_unigram ? "t5" : "llama", "default", true);
    return true;
  }

  bool from_json() {
    const json::Value& model = json_.tree["model"];
    const std::string& type = model["type"].as_string();
    if (json_.tokens.empty()) return false;
    const bool falls_back = model["byte_fallback"].as_bool();
    const std::string_view pretokenizer = pretokenizer_name(json_.tree["pre_tokenizer"]);
    if (type == "BPE" && !falls_back && !splits_bytes(json_)) return false;
    if (type != "BPE" && type != "Unigram" && type != "WordPiece") return false;
    vocabulary_.add(json_);
    if (type == "BPE" && !falls_back) {
      add_added_tokens();
      write_kind("gpt2", pretokenizer.empty() ? "default" : pretokenizer, false);
      // Without merges each byte is a token, wherever the text is cut.
      if (pretokenizer.empty() && (json_.merges.count() != 0 || model["ignore_merges"].as_bool()))
        diagnostics_.warning("pretokenizer-unknown", "tokenizer.json: /pre_tokenizer", llama_cpp::kUnknownPretokenizer,
                             "set tokenizer.ggml.pre if you know the right name");
      metadata_.set(std::move(json_.merges).finish("tokenizer.ggml.merges"));
      return true;
    }
    if (type == "WordPiece") {
      add_added_tokens();
      vocabulary_.mark_word_starts();
      write_kind("bert", "default", false);
      return true;
    }
    if (type == "BPE" && files_.has_byte_merges) return write_byte_merges();
    if (type == "BPE") vocabulary_.score_by_merges(json_);
    vocabulary_.mark_bytes(unknown_token(json_));
    add_added_tokens();
    set_flag("add_space_prefix", adds_space_prefix(json_));
    if (type == "Unigram") {
      set_flag("remove_extra_whitespaces", true);
      each_part(json_.tree["normalizer"], "normalizers", [&](const json::Value& part) {
        write_character_map(decode_base64(part["precompiled_charsmap"].as_string()));
      });
    } else {
      check_bytes();
    }
    write_kind(type == "Unigram" ? "t5" : "llama", "default", true);
    return true;
  }

  // Gemma 4's.
  bool write_byte_merges() {
    vocabulary_.mark_bytes(std::string());
    add_added_tokens();
    // What a model says to the program that runs it has to be seen.
    for (const std::string_view shown :
         {"<|channel>", "<channel|>", "<|tool_call>", "<tool_call|>", "<|tool_response>", "<tool_response|>", "<|\"|>"})
      vocabulary_.show(shown);
    vocabulary_.score_alike();
    set_flag("add_space_prefix", false);
    set_flag("add_bos_token", true);
    write_kind("gemma4", "default", true);
    metadata_.set(std::move(json_.merges).finish("tokenizer.ggml.merges"));
    return true;
  }

  void check_bytes() {
    if (!vocabulary_.has_all_bytes()) diagnostics_.warning("tokenizer-bytes-missing", kAt, llama_cpp::kMissingBytes);
  }

  const TokenizerFiles& files_;
  const json::Value& config_;
  gguf::Metadata& metadata_;
  DiagnosticList& diagnostics_;
  Vocabulary vocabulary_;
  json::Value settings_;
  TokenizerJson json_;
};

}  // namespace

Status write_tokenizer(const TokenizerFiles& files, const json::Value& config, uint64_t rows, gguf::Metadata& metadata,
                       DiagnosticList& diagnostics) {
  if (rows > gguf::kMaxArrayItems)
    return error_at(ErrorCode::format_unsupported, kAt, "a vocabulary of {} tokens; GGUF readers accept up to {}", rows,
                    gguf::kMaxArrayItems);
  return TokenizerWriter(files, config, static_cast<uint32_t>(rows), metadata, diagnostics).run();
}

}  // namespace wasmquant::conversion
