// One function for each dialect's keys; a writer turns rows of keys into JSON Schema.
#include "config/schema.h"

#include "config/dialects/dialects.h"
#include "config/reading/algorithm_config.h"
#include "config/schema_values.h"
#include "config/spec/algorithm_table.h"

namespace wasmquant::config {
namespace {

using json::Array;
using json::Value;

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

  bool lists_algorithms(const Key& key) const {
    const std::string_view name = key.name;
    return info_.has_named_algorithms && (name == "pre_quant_opt_config" || name == "algo_config");
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

  Value member(const Key& key) {
    Value out;
    if (const Array words = words_of(key, info_); !words.empty()) {
      out = one_of_words_or_python(words);
    } else if (key.name == std::string_view("layer_types")) {
      out = layer_types();
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
      out = plain_value(key);
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
