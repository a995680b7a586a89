// Tokenizers of each kind as GGUF's metadata.
#include "gguf_conversion/tokenizer/tokenizer.h"

#include <doctest/doctest.h>

#include <cstring>
#include <string>

#include "formats/gguf/gguf_metadata.h"
#include "gguf_conversion/tokenizer/pretokenizer.h"
#include "gguf_conversion/tokenizer/sentencepiece.h"

using namespace wasmquant;
using namespace wasmquant::conversion;

namespace {

struct Written {
  gguf::Metadata metadata;
  std::vector<std::string> codes;  // of the diagnostics

  std::string text(const char* key) const {
    return std::string(metadata.find_text(std::string("tokenizer.") + key).value_or("-"));
  }
  int64_t number(const char* key) const {
    return static_cast<int64_t>(metadata.find_number(std::string("tokenizer.ggml.") + key).value_or(-1));
  }
  std::vector<std::string> texts(const char* key) const {
    gguf::ArrayView view(metadata.find(std::string("tokenizer.ggml.") + key));
    std::vector<std::string> out;
    for (uint64_t i = 0; i < view.count(); ++i) out.emplace_back(view.next_text());
    return out;
  }
  std::vector<double> numbers(const char* key) const {
    gguf::ArrayView view(metadata.find(std::string("tokenizer.ggml.") + key));
    std::vector<double> out;
    for (uint64_t i = 0; i < view.count(); ++i) out.push_back(view.next_number());
    return out;
  }
};

Result<Written> write(const std::string& tokenizer, const std::string& settings = "", uint64_t rows = 8,
                      const std::string& config = "{}", const std::string& pieces = "",
                      const std::string& chat_template = "") {
  Written written;
  DiagnosticList diagnostics;
  const auto parsed = json::parse(config);
  REQUIRE(parsed);
  const TokenizerFiles files{
      tokenizer, settings, {chat_template, "", {}}, {reinterpret_cast<const uint8_t*>(pieces.data()), pieces.size()}};
  auto status = write_tokenizer(files, *parsed, rows, written.metadata, diagnostics);
  if (!status) return status.error();
  for (const Diagnostic& diagnostic : diagnostics.items()) written.codes.push_back(std::string(diagnostic.code.name()));
  return written;
}

using TokenizerTexts = std::vector<std::string>;
using Numbers = std::vector<double>;

const std::string kBytes = R"("pre_tokenizer": {"type": "ByteLevel", "use_regex": true})";

// Fields of a protocol buffer.
std::string field(int number, const std::string& payload) {
  return std::string(1, static_cast<char>(number << 3 | 2)) + static_cast<char>(payload.size()) + payload;
}
std::string field(int number, uint8_t value) {
  return std::string(1, static_cast<char>(number << 3)) + static_cast<char>(value);
}
std::string field(int number, float value) {
  std::string out(5, static_cast<char>(number << 3 | 5));
  std::memcpy(out.data() + 1, &value, 4);
  return out;
}
std::string piece(const std::string& text, float score, uint8_t type) {
  return field(1, field(1, text) + field(2, score) + field(3, type));
}

}  // namespace

TEST_CASE("tokenizer: byte-level BPE") {
  const auto written = write(R"({"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2, "<s>": 5},
      "merges": ["a b", "ab a"]}, "added_tokens": [{"id": 5, "content": "<s>", "special": true},
      {"id": 6, "content": "\u2581call", "special": false}, {"id": 7, "content": "<|end|>", "special": false}],)" +
                                 kBytes + R"(, "post_processor": {"type": "TemplateProcessing",
      "single": [{"SpecialToken": {"id": "<s>"}}, {"Sequence": {"id": "A"}}]}})",
                             R"({"bos_token": "<s>", "eos_token": {"content": "<|end|>"}, "add_eos_token": false,
      "chat_template": "{{ messages }}"})");
  REQUIRE(written);
  CHECK(written->codes.empty());
  CHECK(written->text("ggml.model") == "gpt2");
  CHECK(written->text("ggml.pre") == "gpt-2");
  CHECK(written->texts("tokens") == TokenizerTexts{"a", "b", "ab", "[PAD3]", "[PAD4]", "<s>", " call", "<|end|>"});
  CHECK(written->numbers("token_type") == Numbers{1, 1, 1, 5, 5, 3, 4, 3});
  CHECK(written->texts("merges") == TokenizerTexts{"a b", "ab a"});
  CHECK(written->metadata.find("tokenizer.ggml.scores") == nullptr);
  CHECK(written->number("bos_token_id") == 5);
  CHECK(written->number("eos_token_id") == 7);
  CHECK(written->number("add_bos_token") == 1);
  CHECK(written->number("add_eos_token") == 0);
  CHECK(written->text("chat_template") == "{{ messages }}");
}

TEST_CASE("tokenizer: merges as pairs, ids of config.json, named templates") {
  const auto written =
      write(R"({"model": {"merges": [["a", "b c"], ["ab", "a"]], "vocab": {"a": 0}, "type": "BPE"},)" + kBytes +
                R"(, "post_processor": {"type": "ByteLevel"},
      "normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}]}})",
            R"({"chat_template": [{"name": "default", "template": "D"}, {"name": "tool_use", "template": "T"}]})", 8,
            R"({"bos_token_id": 3, "eos_token_id": [4, 5], "pad_token_id": 99, "unk_token_id": null})");
  REQUIRE(written);
  CHECK(written->texts("merges") == TokenizerTexts{"a b\u0120c", "ab a"});
  CHECK(written->number("bos_token_id") == 3);
  CHECK(written->number("eos_token_id") == 4);
  CHECK(written->number("padding_token_id") == -1);  // beyond the vocabulary
  CHECK(written->number("add_bos_token") == 0);
  CHECK(written->number("normalizer.nfc") == 1);
  CHECK(written->text("chat_template") == "D");
  CHECK(written->text("chat_template.tool_use") == "T");
  CHECK(gguf::ArrayView(written->metadata.find("tokenizer.chat_templates")).count() == 1);
}

TEST_CASE("tokenizer: BPE with byte fallback is scored by its merges") {
  const auto written = write(R"({"model": {"type": "BPE", "byte_fallback": true, "unk_token": "<unk>",
      "vocab": {"<unk>": 0, "<0x0A>": 1, "a": 2, "b": 3, "ab": 4, "aab": 5, "odd": 6},
      "merges": ["b a", "a b", "a ab"]}, "normalizer": {"type": "Prepend", "prepend": "\u2581"},
      "added_tokens": [{"id": 0, "content": "<unk>", "special": true}]})",
                             R"({"unk_token": "<unk>"})");
  REQUIRE(written);
  CHECK(written->codes == TokenizerTexts{"tokenizer-bytes-missing"});
  CHECK(written->text("ggml.model") == "llama");
  CHECK(written->numbers("token_type") == Numbers{2, 6, 1, 1, 1, 1, 1, 5});
  const Numbers scores = written->numbers("scores");
  CHECK(scores[4] == -1);  // "ba" is no token, so the first merge makes nothing
  CHECK(scores[5] == -2);
  CHECK(scores[6] == -3);
  CHECK(written->number("add_space_prefix") == 1);
  CHECK(written->number("unknown_token_id") == 0);
}

TEST_CASE("tokenizer: Unigram") {
  const auto written =
      write(R"({"model": {"type": "Unigram", "unk_id": 1, "vocab": [["<s>", 0], ["<unk>", -1], ["\u2581a", -2.5]]},
      "pre_tokenizer": {"type": "Metaspace", "prepend_scheme": "never"},
      "normalizer": {"type": "Sequence", "normalizers": [{"type": "Precompiled", "precompiled_charsmap": "AQID/w=="}]},
      "added_tokens": [{"id": 0, "content": "<s>", "special": true}]})");
  REQUIRE(written);
  CHECK(written->text("ggml.model") == "t5");
  CHECK(written->numbers("token_type") == Numbers{3, 2, 1, 5, 5, 5, 5, 5});
  CHECK(written->numbers("scores")[2] == -2.5);
  CHECK(written->number("add_space_prefix") == 0);
  CHECK(written->numbers("precompiled_charsmap") == Numbers{1, 2, 3, 255});
}

TEST_CASE("tokenizer: WordPiece") {
  const auto written =
      write(R"({"model": {"type": "WordPiece", "vocab": {"[PAD]": 0, "[CLS]": 1, "play": 2, "##ing": 3, "[SEP]": 4}},
      "normalizer": {"type": "BertNormalizer", "lowercase": true, "strip_accents": null},
      "added_tokens": [{"id": 0, "content": "[PAD]", "special": true}, {"id": 1, "content": "[CLS]", "special": true},
      {"id": 4, "content": "[SEP]", "special": true}]})",
            R"({"cls_token": "[CLS]", "sep_token": "[SEP]", "pad_token": "[PAD]"})", 5);
  REQUIRE(written);
  CHECK(written->text("ggml.model") == "bert");
  CHECK(written->texts("tokens") == TokenizerTexts{"[PAD]", "[CLS]", "\u2581play", "ing", "[SEP]"});
  CHECK(written->number("bos_token_id") == 1);
  CHECK(written->number("eos_token_id") == 4);
  CHECK(written->number("seperator_token_id") == 4);
  CHECK(written->number("normalizer.lowercase") == 1);
  CHECK(written->metadata.find("tokenizer.ggml.normalizer.strip_accents") == nullptr);
}

TEST_CASE("tokenizer: sentencepiece has priority over tokenizer.json") {
  const std::string json = R"({"model": {"type": "BPE", "vocab": {"x": 0}, "merges": []},)" + kBytes + "}";
  const std::string pieces = piece("<unk>", 0, 2) + piece("<s>", 0, 3) + piece("\u2581a", -1.5f, 1) +
                             field(2, field(3, uint8_t{2})) + field(3, field(3, uint8_t{0}));
  const auto written = write(json, R"({"added_tokens_decoder": {"0": {"content": "<unk>", "special": true},
      "4": {"content": "<mask>", "special": false}, "x": {"content": "none"}}})",
                             5, "{}", pieces);
  REQUIRE(written);
  CHECK(written->text("ggml.model") == "llama");
  CHECK(written->texts("tokens") == TokenizerTexts{"<unk>", "<s>", "\u2581a", "[PAD3]", "<mask>"});
  CHECK(written->numbers("token_type") == Numbers{2, 3, 1, 5, 3});
  CHECK(written->numbers("scores")[2] == -1.5);
  CHECK(written->number("add_space_prefix") == 0);
  // A unigram model, and one that is none of sentencepiece's.
  CHECK(write(json, "", 5, "{}", piece("a", 0, 1))->text("ggml.model") == "t5");
  CHECK(write(json, "", 5, "{}", "IQ== 0\nIg== 1\n")->text("ggml.model") == "gpt2");
}

TEST_CASE("tokenizer: broken sentencepiece models are refused") {
  const std::string good = piece("a", 1, 1);
  const auto read = [](const std::string& bytes) {
    return read_sentencepiece({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
  };
  REQUIRE(read(good));
  for (size_t cut = 1; cut < good.size(); ++cut) CHECK_FALSE(read(good.substr(0, cut)));
  CHECK_FALSE(read(""));
  CHECK_FALSE(read(piece("a", 0, 0)));
  CHECK_FALSE(read(piece("a", 0, 7)));
  CHECK_FALSE(read(good + std::string(1, '\x0B')));       // a group
  CHECK_FALSE(read(good + std::string(11, '\xFF')));      // a number without end
  CHECK(read(good + field(9, std::string("whatever"))));  // fields of later versions
}

TEST_CASE("tokenizer: missing and unknown tokenizers are reported") {
  CHECK(write("")->codes == TokenizerTexts{"tokenizer-missing"});
  CHECK(write("")->text("ggml.model") == "no_vocab");
  CHECK(write(R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}})")->text("ggml.model") == "no_vocab");
  CHECK(write(R"({"model": {"type": "WordLevel", "vocab": {"a": 0}}})")->text("ggml.model") == "no_vocab");
  CHECK(write(R"({"model": null})")->text("ggml.model") == "no_vocab");
  CHECK(write("[]")->text("ggml.model") == "no_vocab");
  const auto with_merges = [](const std::string& merges) {
    return write(R"({"model": {"type": "BPE", "vocab": {"a": 0, "b": 99}, "merges": )" + merges +
                 R"(}, "pre_tokenizer": {"type": "ByteLevel", "use_regex": false}})");
  };
  const auto unknown = with_merges(R"(["a b"])");
  REQUIRE(unknown);
  CHECK(unknown->text("ggml.pre") == "default");
  CHECK(unknown->codes == TokenizerTexts{"pretokenizer-unknown", "tokens-lost"});
  // Bytes are what they are, wherever a text is cut; whole words that are tokens are not.
  CHECK(with_merges("[]")->codes == TokenizerTexts{"tokens-lost"});
  CHECK(with_merges(R"([], "ignore_merges": true)")->codes == TokenizerTexts{"pretokenizer-unknown", "tokens-lost"});
}

TEST_CASE("tokenizer: broken texts are errors that name the file") {
  for (const char* text : {"{", R"({"model": {"vocab": {"a": "b"}}})", R"({"model": {"vocab": {"a": -1}}})",
                           R"({"model": {"vocab": {"a": 1e9}}})", R"({"model": {"vocab": [1]}})",
                           R"({"model": {"vocab": {"a": 99999999999}}})", R"({"model": {"vocab": {"a": [1]}}})",
                           R"({"model": {"merges": [1]}})", R"({"model": {"merges": [["a"]]}})",
                           R"({"model": {"merges": [["a", "b", "c"]]}})", R"({"model": {"merges": {"a": "b"}}})",
                           R"({"model": {"merges": [["a", ["b"]]]}})"}) {
    const auto written = write(text);
    CAPTURE(text);
    REQUIRE_FALSE(written);
    CHECK(written.error().code == ErrorCode::json_invalid);
    CHECK(written.error().where.starts_with("tokenizer.json: byte "));
  }
  const auto settings = write("", "{]");
  REQUIRE_FALSE(settings);
  CHECK(settings.error().where.starts_with("tokenizer_config.json: byte "));
}

TEST_CASE("tokenizer: pretokenizers are recognised by their expressions") {
  const auto name = [](const std::string& json) {
    const auto parsed = json::parse(json);
    REQUIRE(parsed);
    return std::string(pretokenizer_name(*parsed));
  };
  const auto split = [&](const std::string& expression) {
    json::Value pattern, part, bytes, sequence;
    pattern.set("Regex", expression);
    part.set("type", "Split");
    part.set("pattern", pattern);
    bytes.set("type", "ByteLevel");
    bytes.set("use_regex", false);
    sequence.set("type", "Sequence");
    sequence.set("pretokenizers", json::Array{part, bytes});
    return std::string(pretokenizer_name(sequence));
  };
  CHECK(name(R"({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true})") == "gpt-2");
  CHECK(name(R"({"type": "ByteLevel", "use_regex": false})").empty());
  CHECK(name(R"({"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": true},
                {"type": "ByteLevel", "use_regex": true}]})") == "smollm");
  CHECK(name("null").empty());
  CHECK(name(R"({"type": "Whitespace"})").empty());
  // As the tokenizer.json files of Llama 3, Qwen 2, GPT-4o and Mistral Nemo spell them.
  CHECK(
      split(
          R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)") ==
      "llama-bpe");
  CHECK(
      split(
          R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)") ==
      "qwen2");
  CHECK(
      split(
          R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)") ==
      "gpt-4o");
  CHECK(
      split(
          R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)") ==
      "tekken");
  CHECK(split(R"(\w+)").empty());
}
