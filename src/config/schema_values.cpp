// Words of keys whose parser has them in code are listed here by key.
#include "config/schema_values.h"

#include <algorithm>

#include "config/reading/algorithm_config.h"
#include "config/spec/vocabulary.h"
#include "core/message.h"
#include "numeric/ggml_type.h"

namespace wasmquant::config {
namespace {

// Dotted names, reprs and capitals, which index_of_word reads, too: which word they name, the parser finds out.
constexpr char kPythonSpellings[] = "[.<]|^[A-Z][A-Z0-9_]*$";
constexpr std::string_view kObserver = "Observer";

using json::Array;
using json::Value;

struct KindName {
  uint16_t kind;
  const char* name;
};
constexpr KindName kKindNames[] = {{kBool, "boolean"},  {kInteger, "integer"}, {kNumber, "number"},
                                   {kString, "string"}, {kArray, "array"},     {kObject, "object"}};

// Words of keys that have the same in every class, which parsers have in code, not in their tables.
struct Words {
  std::string_view key;
  std::span<const std::string_view> words;
};
constexpr Words kSpecWords[] = {
    {"dtype", kDtypeWords},        {"mx_element_dtype", kMxElements}, {"target_device", kTargetDevices},
    {"quant_mode", kQuantModes},   {"resolution", kResolutions},      {"indivisible_groups", kIndivisibleGroups},
    {"pack_method", kPackMethods}, {"weight_format", kWeightFormats}, {"scale_refit", kScaleRefits},
#define WASMQUANT_GRID_FIELD(type, name, ...) {#name, words_of(type())},
#define WASMQUANT_OPTION_FIELD(type, name, ...) {#name, words_of(type())},
#define WASMQUANT_SPEC_FIELD(type, name, ...) {#name, words_of(type())},
#include "config/spec/spec_fields.def"
};

Array split(std::string_view words) {
  Array out;
  for (size_t begin = 0; begin < words.size();) {
    const size_t end = std::min(words.find('|', begin), words.size());
    out.emplace_back(words.substr(begin, end - begin));
    begin = end + 1;
  }
  return out;
}

}  // namespace

Value one_of_words(const Array& words) {
  Value out;
  Array all = words;
  all.emplace_back(nullptr);
  out.set("enum", std::move(all));
  return out;
}

Value one_of_words_or_python(const Array& words) {
  Value python, out;
  std::string pattern = kPythonSpellings;
  const auto admit = [&](std::string word) {
    std::transform(word.begin(), word.end(), word.begin(), lower);
    pattern += text_of("|^{}$", word);
  };
  for (const Value& word : words) {
    const std::string& text = word.as_string();
    const size_t at = text.find(kObserver);
    if (std::any_of(text.begin(), text.end(), [](char c) { return c != lower(c); })) admit(text);
    if (at == text.npos) continue;
    const std::string short_name = text.substr(0, at) + text.substr(at + kObserver.size());
    admit(short_name);
    pattern += text_of("|^{}$", short_name);
  }
  python.set("type", "string");
  python.set("pattern", std::move(pattern));
  out.set("anyOf", Array{one_of_words(words), std::move(python)});
  return out;
}

Array ggml_types() {
  Array names;
  for (const GgmlTypeInfo& row : kGgmlTypes)
    if (row.can_quantize()) names.emplace_back(row.name);
  return names;
}

Array words_of(const Key& key, const DialectInfo& dialect) {
  Array words;
  if (key.words != nullptr) return split(key.words);
  if (!dialect.has_spec_words) return words;
  const std::string_view name = key.name;
  for (const Words& row : kSpecWords)
    if (row.key == name)
      for (const std::string_view word : row.words) words.emplace_back(word);
  if (name == "dtype")
    for (const DtypeInfo& row : kDtypes)  // in addition to Quark's
      if (std::find(kDtypeWords.begin(), kDtypeWords.end(), row.name) == kDtypeWords.end())
        words.emplace_back(row.name);
  if (name == "observer_cls")
    for (const ObserverInfo& row : kObservers) words.emplace_back(row.name);
  return words;
}

Value layer_types() {
  Value out;
  Array types;
  for (const std::string_view type : kKnownTypes) types.emplace_back(type);
  Value type;
  type.set("enum", std::move(types));
  out.set("type", Array{Value("object"), Value("null")});
  out.set("additionalProperties", std::move(type));
  return out;
}

Value plain_value(const Key& key) {
  Value out;
  Array kinds;
  for (const KindName& row : kKindNames)
    if ((key.kinds & row.kind) != 0) kinds.emplace_back(row.name);
  kinds.emplace_back("null");
  out.set("type", std::move(kinds));
  if ((key.kinds & kNames) != 0) {
    Value name;
    name.set("type", "string");
    name.set("minLength", 1);
    out.set("items", std::move(name));
  }
  return out;
}

Value algorithm_of(const AlgorithmInfo& row) {
  Value properties, name, out;
  name.set("enum", split(row.names));
  properties.set("name", std::move(name));
  for (std::string_view rest = row.fields; !rest.empty();) {
    const AlgorithmField field = next_field(rest);
    Value kinds;
    for (const KindName& kind : kKindNames)
      if (kind.name[0] == field.kind) kinds.set("type", Array{Value(kind.name), Value("null")});
    properties.set(std::string(field.name), std::move(kinds));
  }
  for (const Value& field : split(kIgnoredAlgorithmFields)) {
    Value without_effect;
    without_effect.set("deprecated", true);
    properties.set(field.as_string(), std::move(without_effect));
  }
  out.set("type", "object");
  out.set("properties", std::move(properties));
  out.set("required", Array{Value("name")});
  out.set("additionalProperties", false);
  return out;
}

}  // namespace wasmquant::config
