// llama.cpp identifies pretokenizers by name and contains their regular expressions (llama-vocab.cpp); tokenizer.json
// has the expressions. Equal expressions split text equally, so one name serves all models with that expression:
//   ByteLevel with its own expression: gpt-2 · Digits, one by one, before it: smollm (also starcoder, refact)
//   Split by an expression: by the table
#include "gguf_conversion/tokenizer/pretokenizer.h"

#include <string>
#include <utility>

#include "core/message.h"
#include "gguf_conversion/tokenizer/tokenizer_json.h"

namespace wasmquant::conversion {
namespace {

// Common parts of the expressions: 1 contractions, 2 letters, 3 digits, 4 others, 5 spaces.
#define CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define LETTERS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+"
#define OTHERS "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*"
#define OTHERS_WITH_SLASH "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*"
#define SPACES "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define CASED_FIRST "[^\\r\\n\\p{L}\\p{N}]?" UPPER "*" LOWER "+"
#define CASED_SECOND "|[^\\r\\n\\p{L}\\p{N}]?" UPPER "+" LOWER "*"

struct Expression {
  const char* text;
  const char* name;
  const char* others;  // names that llama.cpp treats alike, between spaces
};
constexpr Expression kExpressions[] = {
    {CONTRACTIONS LETTERS "|\\p{N}{1,3}" OTHERS SPACES, "llama-bpe",
     " llama3 llama-v3 falcon3 falcon-h1 pixtral midm-2.0 lfm2 "},
    {CONTRACTIONS LETTERS "|\\p{N}" OTHERS SPACES, "qwen2", " stablelm2 deepseek-r1-qwen megrez "},
    {CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*" SPACES, "qwen35",
     ""},
    {CASED_FIRST CONTRACTIONS "?" CASED_SECOND CONTRACTIONS "?|\\p{N}{1,3}" OTHERS_WITH_SLASH SPACES, "gpt-4o",
     " llama4 "},
    {CASED_FIRST CASED_SECOND "|\\p{N}" OTHERS_WITH_SLASH SPACES, "tekken", ""},
};

// Byte-level ones with their own expression; with digits one by one.
constexpr const char kPlain[] = " gpt-2 phi-2 jina-es jina-de mpt olmo jais trillion roberta-bpe ";
constexpr const char kDigits[] = " smollm starcoder refact command-r codeshell exaone minerva-7b ";
// What llama.cpp does with "default".
constexpr const char* kDefault[] = {
    "[\\p{P}\\$\\+<=>\\^~\\|]+",
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)",
    "\\p{N}+",
    "[0-9][0-9][0-9]",
};

#undef CONTRACTIONS
#undef LETTERS
#undef OTHERS
#undef OTHERS_WITH_SLASH
#undef SPACES
#undef UPPER
#undef LOWER
#undef CASED_FIRST
#undef CASED_SECOND

}  // namespace

std::string_view pretokenizer_name(const json::Value& pre_tokenizer) {
  bool has_bytes = false, own_expression = false, digits = false, unknown = false;
  std::string expression;
  each_part(pre_tokenizer, "pretokenizers", [&](const json::Value& part) {
    const std::string& type = part["type"].as_string();
    if (type == "ByteLevel") {
      has_bytes = true;
      const json::Value* use = part.find("use_regex");
      own_expression = use == nullptr || use->as_bool();
    } else if (type == "Digits" && part["individual_digits"].as_bool()) {
      digits = true;
    } else if (type == "Split" && expression.empty()) {
      expression = part["pattern"]["Regex"].as_string();
    } else {
      unknown = true;
    }
  });
  if (!has_bytes || unknown) return {};
  if (expression.empty() && own_expression) return digits ? "smollm" : "gpt-2";
  if (digits || own_expression) return {};
  for (const Expression& row : kExpressions)
    if (expression == row.text) return row.name;
  return {};
}

std::string pretokenizer_json(std::string_view name) {
  const std::string between = text_of(" {} ", name);
  const auto is_among = [&](std::string_view names) { return names.find(between) != names.npos; };
  const auto split = [](const char* expression) {
    json::Value out, pattern;
    pattern.set("Regex", expression);
    out.set("type", "Split");
    out.set("pattern", std::move(pattern));
    out.set("behavior", "Isolated");
    out.set("invert", false);
    return out;
  };
  json::Array parts;
  bool own_expression = is_among(kPlain);
  if (is_among(kDigits)) {
    json::Value digits;
    digits.set("type", "Digits");
    digits.set("individual_digits", true);
    parts.push_back(std::move(digits));
    own_expression = true;
  }
  if (name == "default")
    for (const char* expression : kDefault) parts.push_back(split(expression));
  for (const Expression& row : kExpressions)
    if (name == row.name || is_among(row.others)) parts.push_back(split(row.text));
  if (parts.empty() && !own_expression) return "null";
  json::Value bytes, out;
  bytes.set("type", "ByteLevel");
  bytes.set("add_prefix_space", false);
  bytes.set("trim_offsets", true);
  bytes.set("use_regex", own_expression);
  parts.push_back(std::move(bytes));
  out.set("type", "Sequence");
  out.set("pretokenizers", std::move(parts));
  return json::write(out);
}

}  // namespace wasmquant::conversion
