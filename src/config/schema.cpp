// One function for each dialect's keys; a writer turns rows of keys into JSON Schema.
#include "config/schema.h"

#include <algorithm>

#include "config/dialects/dialects.h"
#include "config/reading/algorithm_config.h"
#include "config/spec/algorithm_table.h"
#include "config/spec/vocabulary.h"
#include "numeric/ggml_type.h"

namespace wasmquant::config {
namespace {

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
    {"pack_method", kPackMethods}, {"weight_format", kWeightFormats},
#define WASMQUANT_GRID_FIELD(type, name, ...) {#name, words_of(type())},
#define WASMQUANT_OPTION_FIELD(type, name, ...) {#name, words_of(type())},
#define WASMQUANT_SPEC_FIELD(type, name, ...) {#name, words_of(type())},
#include "config/spec/spec_fields.def"
};

class SchemaWriter {
 public:
  explicit SchemaWriter(Dialect dialect) : dialect_(dialect), info_(info_of(dialect)) {}

  Value write(const Keys& keys) {
    Value out = object(keys);
    out.set("$defs", std::move(definitions_));
    return out;
  }

 private:
  Value object(const Keys& keys) {
    Value properties{json::Object{}}, out;
    const Value standards = keys.standards != nullptr ? keys.standards() : Value();
    for (const Key& key : std::span<const Key>(keys)) {
      Value property = member(key);
      if (const Value* standard = standards.find(key.name)) property.set("default", *standard);
      properties.set(key.name, std::move(property));
      if (key.old_name != nullptr) {
        Value old = member(key);
        old.set("deprecated", true);
        properties.set(key.old_name, std::move(old));
      }
    }
    if (keys.title != nullptr) out.set("title", keys.title);
    out.set("type", "object");
    out.set("properties", std::move(properties));
    out.set("additionalProperties", keys.lenient);
    return out;
  }

  Value reference(const Keys& keys) {
    if (keys.title == nullptr) return object(keys);
    if (definitions_.find(keys.title) == nullptr) {
      definitions_.set(keys.title, Value());  // it may refer to itself
      Value definition = object(keys);
      for (auto& [name, value] : definitions_.members())
        if (name == keys.title) value = std::move(definition);
    }
    Value out;
    out.set("$ref", std::string("#/$defs/") + keys.title);
    return out;
  }

  static Array split(std::string_view words) {
    Array out;
    for (size_t begin = 0; begin < words.size();) {
      const size_t end = std::min(words.find('|', begin), words.size());
      out.emplace_back(words.substr(begin, end - begin));
      begin = end + 1;
    }
    return out;
  }

  bool lists_algorithms(const Key& key) const {
    const std::string_view name = key.name;
    return info_.has_named_algorithms && (name == "pre_quant_opt_config" || name == "algo_config");
  }

  // A row of algorithms.def: any of its names, and its fields.
  static Value algorithm_of(const AlgorithmInfo& row) {
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

  Value algorithm() {
    constexpr char kTitle[] = "Algorithm";
    if (definitions_.find(kTitle) == nullptr) {
      Array rows;
      for (const AlgorithmInfo& row : kAlgorithms) rows.push_back(algorithm_of(row));
      Value any;
      any.set("anyOf", std::move(rows));
      definitions_.set(kTitle, std::move(any));
    }
    Value out;
    out.set("$ref", std::string("#/$defs/") + kTitle);
    return out;
  }

  // An algorithm under a name of the dialect's own, of one of its two lists.
  Value own_algorithm(bool before) {
    Array rows;
    for (const AlgorithmKeys& row : info_.algorithms()) {
      if (row.before != before) continue;
      Value name, inner = object(row.keys);
      name.set("enum", Array{Value(row.name)});
      for (auto& [key, value] : inner.members())
        if (key == "properties") value.set("name", std::move(name));
      inner.set("required", Array{Value("name")});
      rows.push_back(std::move(inner));
    }
    Value any, out;
    any.set("anyOf", std::move(rows));
    out.set("type", Array{Value("array"), Value("null")});
    out.set("items", std::move(any));
    return out;
  }

  // Parameters of range estimators: of any, because another key names the estimator.
  Value estimator_parameters() {
    Array rows;
    for (const Keys& keys : info_.parameters().first(3)) rows.push_back(object(keys));
    Value none, out;
    none.set("type", "null");
    rows.push_back(std::move(none));
    out.set("anyOf", std::move(rows));
    return out;
  }

  static Value one_of_words(const Array& words) {
    Value out;
    Array all = words;
    all.emplace_back(nullptr);
    out.set("enum", std::move(all));
    return out;
  }

  static Array ggml_types() {
    Array names;
    for (const GgmlTypeInfo& row : kGgmlTypes)
      if (row.can_quantize()) names.emplace_back(row.name);
    return names;
  }

  Array words_of(const Key& key) const {
    Array words;
    if (key.words != nullptr) return split(key.words);
    if (!info_.has_spec_words) return words;
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

  Value member(const Key& key) {
    Value out;
    if (const Array words = words_of(key); !words.empty()) {
      out = one_of_words(words);
    } else if (key.name == std::string_view("layer_types")) {
      Array types;
      for (const std::string_view type : kKnownTypes) types.emplace_back(type);
      Value type;
      type.set("enum", std::move(types));
      out.set("type", Array{Value("object"), Value("null")});
      out.set("additionalProperties", std::move(type));
    } else if (dialect_ == Dialect::gguf && key.standard == nullptr && key.name != std::string_view("$schema")) {
      out = one_of_words(ggml_types());  // output_type, embedding_type
    } else if (dialect_ == Dialect::gguf && key.name == std::string_view("layers")) {
      out.set("type", "object");
      out.set("additionalProperties", one_of_words(ggml_types()));
    } else if (key.name == std::string_view("range_estimator_params")) {
      out = estimator_parameters();
    } else if (info_.algorithms != nullptr &&
               (key.name == std::string_view("pre_quant_opt_config") || key.name == std::string_view("algo_config"))) {
      out = own_algorithm(key.name[0] == 'p');
    } else if (key.of != nullptr || lists_algorithms(key)) {
      Value inner = key.of != nullptr ? reference(*key.of) : algorithm();
      Array choices;
      if ((key.kinds & kMap) != 0) {
        Value map;
        map.set("type", "object");
        map.set("additionalProperties", inner);
        choices.push_back(std::move(map));
      } else if ((key.kinds & kObject) != 0) {
        choices.push_back(inner);
      }
      if ((key.kinds & kArray) != 0) {
        Value list;
        list.set("type", "array");
        list.set("items", std::move(inner));
        choices.push_back(std::move(list));
      }
      Value none;
      none.set("type", "null");
      choices.push_back(std::move(none));
      out.set("anyOf", std::move(choices));
    } else {
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
    }
    if (key.standard != nullptr) {
      if (auto standard = json::parse(key.standard)) out.set("default", std::move(*standard));
    }
    return out;
  }

  Dialect dialect_;
  const DialectInfo& info_;
  Value definitions_{json::Object{}};
};

}  // namespace

json::Value schema(Dialect dialect) {
  const Keys& keys = info_of(dialect).keys();
  Value out;
  out.set("$schema", "https://json-schema.org/draft/2020-12/schema");
  Value parts = SchemaWriter(dialect).write(keys);
  for (auto& [name, value] : parts.members()) out.set(name, std::move(value));
  return out;
}

}  // namespace wasmquant::config
