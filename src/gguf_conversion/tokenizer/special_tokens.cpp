// Readers of tokenizer.json's post-processors and normalizers, and the keys that follow from them.
#include "gguf_conversion/tokenizer/special_tokens.h"

#include <optional>
#include <string>

#include "core/message.h"
#include "families/config_reader.h"

namespace wasmquant::conversion {
namespace {

// A token's text: a string, or {"content": string}.
std::string_view token_text(const json::Value& settings, const char* key) {
  const json::Value& token = settings[key];
  return token.is_object() ? token["content"].as_string() : token.as_string();
}

struct Ends {
  std::string_view begin, end, turn_end;
  std::optional<bool> adds_begin, adds_end;
};

// {"SpecialToken": {"id": text}} of a template; empty for {"Sequence": …}.
std::string_view special_of(const json::Value& piece) { return piece["SpecialToken"]["id"].as_string(); }

// "single": [<begin>, sequence, <end>]: the tokens that the tokenizer adds.
void read_template(const json::Value& processor, Ends& ends) {
  const json::Array& single = processor["single"].items();
  if (single.size() < 2) return;
  if (const std::string_view first = special_of(single.front()); !first.empty()) {
    if (ends.begin.empty()) ends.begin = first;
    ends.adds_begin = first == ends.begin;
  }
  const std::string_view last = special_of(single.back());
  if (last.empty()) return;
  if (!ends.end.empty() && ends.end != last) ends.turn_end = ends.end;  // ends a chat turn, not the text
  ends.end = last;
  ends.adds_end = true;
}

void read_post_processor(const json::Value& post_processor, Ends& ends) {
  each_part(post_processor, "processors", [&](const json::Value& part) {
    const std::string& type = part["type"].as_string();
    if (type == "TemplateProcessing") {
      read_template(part, ends);
    } else if (type == "RobertaProcessing" || type == "BertProcessing") {
      ends.adds_begin = ends.adds_end = true;
    } else if (type == "ByteLevel") {
      if (!ends.adds_begin) ends.adds_begin = false;
      if (!ends.adds_end) ends.adds_end = false;
    }
  });
}

void write_normalizer(const json::Value& normalizer, gguf::Metadata& metadata) {
  const auto set = [&](const char* name, bool value) {
    metadata.set_bool(text_of("tokenizer.ggml.normalizer.{}", name), value);
  };
  constexpr const char* kTypes[][2] = {{"NFC", "nfc"}, {"Lowercase", "lowercase"}, {"StripAccents", "strip_accents"}};
  each_part(normalizer, "normalizers", [&](const json::Value& part) {
    const std::string& type = part["type"].as_string();
    for (const auto& [name, key] : kTypes) {
      if (type == name) set(key, true);
      if (type == "BertNormalizer" && part[key].is_bool()) set(key, part[key].as_bool());
    }
  });
}

}  // namespace

void write_special_tokens(const json::Value& tokenizer, const json::Value& settings, const json::Value& config,
                          const Vocabulary& vocabulary, gguf::Metadata& metadata) {
  Ends ends{token_text(settings, "bos_token"), token_text(settings, "eos_token"), {}, {}, {}};
  if (ends.begin.empty()) ends.begin = token_text(settings, "cls_token");
  if (ends.end.empty()) ends.end = token_text(settings, "sep_token");
  read_post_processor(tokenizer["post_processor"], ends);

  struct Row {
    const char* key;  // tokenizer.ggml.<key>_token_id
    std::string_view text;
    const char* config_key;  // key of the id, used if the text is unknown
  };
  const Row rows[] = {{"bos", ends.begin, "bos_token_id"},
                      {"eos", ends.end, "eos_token_id"},
                      {"eot", ends.turn_end, "eot_token_id"},
                      {"unknown", token_text(settings, "unk_token"), "unk_token_id"},
                      {"seperator", token_text(settings, "sep_token"), "sep_token_id"},  // ggml's spelling
                      {"padding", token_text(settings, "pad_token"), "pad_token_id"},
                      {"mask", token_text(settings, "mask_token"), "mask_token_id"}};
  const families::ConfigReader reader(config);
  for (const Row& row : rows) {
    std::optional<uint32_t> id = row.text.empty() ? std::nullopt : vocabulary.id_of(row.text);
    const json::Value* number = reader.find(row.config_key);
    if (!id && number != nullptr) {
      if (number->is_array() && !number->items().empty()) number = &number->items().front();
      if (number->is_integer() && number->as_integer() >= 0 && number->as_integer() < vocabulary.size())
        id = static_cast<uint32_t>(number->as_integer());
    }
    if (id) metadata.set_u32(text_of("tokenizer.ggml.{}_token_id", row.key), *id);
  }
  const auto write_flag = [&](const char* name, std::optional<bool> adds) {
    const json::Value& setting = settings[name];
    if (!adds && setting.is_bool()) adds = setting.as_bool();
    if (adds) metadata.set_bool(text_of("tokenizer.ggml.{}", name), *adds);
  };
  write_flag("add_bos_token", ends.adds_begin);
  write_flag("add_eos_token", ends.adds_end);
  write_normalizer(tokenizer["normalizer"], metadata);
}

}  // namespace wasmquant::conversion
