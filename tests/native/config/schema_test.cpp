// The JSON Schemas of the dialects admit what the parsers admit, and refuse keys, kinds and words that do not exist.
#include "config/schema.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <regex>
#include <span>
#include <string>
#include <string_view>

#include "config/dialects/dialects.h"
#include "config/presets.h"

using namespace wasmquant;

namespace {

/// The keywords that our schemas use, by the rules of JSON Schema 2020-12.
class SchemaJudge {
 public:
  explicit SchemaJudge(const json::Value& root) : root_(root) {}

  /// The pointer of the first value that the schema refuses; empty: none.
  std::string refused(const json::Value& value, const json::Value& schema, const std::string& where) const {
    if (const json::Value* target = schema.find("$ref")) {
      const std::string& text = target->as_string();
      const json::Value* found = root_["$defs"].find(text.substr(std::string_view("#/$defs/").size()));
      REQUIRE_MESSAGE(found != nullptr, text);
      return refused(value, *found, where);
    }
    if (const json::Value* any = schema.find("anyOf"))
      if (std::none_of(any->items().begin(), any->items().end(),
                       [&](const json::Value& each) { return refused(value, each, where).empty(); }))
        return where;
    if (const json::Value* words = schema.find("enum"))
      if (std::find(words->items().begin(), words->items().end(), value) == words->items().end()) return where;
    if (!has_type(value, schema) || !matches(value, schema)) return where;
    return refused_part(value, schema, where);
  }

  std::string refused(const json::Value& config) const { return refused(config, root_, "#"); }

 private:
  static bool is_of(const json::Value& value, const std::string& type) {
    if (type == "null") return value.is_null();
    if (type == "boolean") return value.is_bool();
    if (type == "integer") return value.is_integer();
    if (type == "number") return value.is_number();
    if (type == "string") return value.is_string();
    return type == "array" ? value.is_array() : type == "object" && value.is_object();
  }

  static bool has_type(const json::Value& value, const json::Value& schema) {
    const json::Value* type = schema.find("type");
    if (type == nullptr) return true;
    if (type->is_string()) return is_of(value, type->as_string());
    return std::any_of(type->items().begin(), type->items().end(),
                       [&](const json::Value& each) { return is_of(value, each.as_string()); });
  }

  static bool matches(const json::Value& value, const json::Value& schema) {
    const json::Value* pattern = schema.find("pattern");
    if (pattern != nullptr && value.is_string())
      return std::regex_search(value.as_string(), std::regex(pattern->as_string()));
    const json::Value* least = schema.find("minLength");
    return least == nullptr || !value.is_string() ||
           value.as_string().size() >= static_cast<size_t>(least->as_integer());
  }

  std::string refused_part(const json::Value& value, const json::Value& schema, const std::string& where) const {
    const json::Value &properties = schema["properties"], &rest = schema["additionalProperties"];
    for (const auto& [name, member] : value.members()) {
      const std::string place = where + "/" + name;
      const json::Value* known = properties.find(name);
      if (known == nullptr && rest.is_bool() && !rest.as_bool()) return place;
      if (known == nullptr && rest.is_object()) known = &rest;
      if (known == nullptr) continue;
      if (std::string found = refused(member, *known, place); !found.empty()) return found;
    }
    for (const json::Value& required : schema["required"].items())
      if (value.is_object() && value.find(required.as_string()) == nullptr) return where;
    if (const json::Value* each = schema.find("items"))
      for (size_t i = 0; i < value.items().size(); ++i)
        if (std::string found = refused(value.items()[i], *each, where + "/" + std::to_string(i)); !found.empty())
          return found;
    return {};
  }

  const json::Value& root_;
};

json::Value schema_test_parse(std::string_view text) {
  auto value = json::parse(text);
  REQUIRE_MESSAGE(bool(value), text);
  return std::move(*value);
}

std::string first_refused(Dialect dialect, std::string_view text) {
  const json::Value schema = config::schema(dialect);
  return SchemaJudge(schema).refused(schema_test_parse(text));
}

}  // namespace

TEST_CASE("schemas: every preset is valid in the schema of its dialect") {
  size_t judged = 0;
  for (const config::Preset& preset : config::presets()) {
    CAPTURE(preset.name);
    const json::Value written = schema_test_parse(preset.config_text());
    DiagnosticList diagnostics;
    const auto dialect = config::detect_dialect(written, "", diagnostics);
    REQUIRE(dialect.has_value());
    const json::Value schema = config::schema(*dialect);
    CHECK(SchemaJudge(schema).refused(written) == "");
    ++judged;
  }
  CHECK(judged == config::presets().size());
  CHECK(judged > 50);
}

TEST_CASE("schemas: each dialect has one, and no key of any refers to a definition that is missing") {
  for (size_t i = 0; i < std::size(config::kDialectNames); ++i) {
    CAPTURE(config::kDialectNames[i]);
    const json::Value schema = config::schema(static_cast<Dialect>(i));
    CHECK(schema["$schema"].as_string() == "https://json-schema.org/draft/2020-12/schema");
    const std::string text = json::write(schema);
    constexpr std::string_view kReference = R"("$ref":"#/$defs/)";
    for (size_t at = text.find(kReference); at != text.npos; at = text.find(kReference, at + 1)) {
      const size_t begin = at + kReference.size();
      const std::string name = text.substr(begin, text.find('"', begin) - begin);
      CHECK_MESSAGE(schema["$defs"].find(name) != nullptr, name);
    }
    for (const config::Key& key : std::span<const config::Key>(config::info_of(static_cast<Dialect>(i)).keys()))
      CHECK_MESSAGE(schema["properties"].find(key.name) != nullptr, std::string(key.name));
  }
}

TEST_CASE("schemas: unknown keys, wrong kinds and unknown words are refused at their place") {
  const struct {
    Dialect dialect;
    std::string_view text, refused;
  } kCases[] = {
      {Dialect::quark, R"({"global_quant_config":{"weight":{"dtype":"int4"}}})", ""},
      {Dialect::quark, R"({"global_quant_config":{"weight":{"dtype":"int5x"}}})", "#/global_quant_config"},
      {Dialect::quark, R"({"global_quant":{}})", "#/global_quant"},
      {Dialect::quark, R"({"exclude":"lm_head"})", "#/exclude"},
      {Dialect::quark, R"({"exclude":[""]})", "#/exclude/0"},
      {Dialect::quark, R"({"algo_config":[{"name":"gptq","block_size":128}]})", ""},
      {Dialect::quark, R"({"algo_config":[{"name":"gptq","blocks":128}]})", "#/algo_config"},
      {Dialect::gguf, R"({"dialect":"gguf","recipe":"q4_k_m","layers":{"output":"q8_0"}})", ""},
      {Dialect::gguf, R"({"dialect":"gguf","recipe":"q4_k_m","layers":{"output":"q9_0"}})", "#/layers/output"},
      {Dialect::gguf, R"({"dialect":"gguf","recipe":"q4_k_m","pure":1})", "#/pure"},
      {Dialect::brevitas, R"({"dialect":"brevitas","weight_bit_width":"4"})", "#/weight_bit_width"},
      {Dialect::aihwkit, R"({"dialect":"aihwkit","module_qconfig_map":[]})", "#/module_qconfig_map"},
  };
  for (const auto& [dialect, text, refused] : kCases) {
    CAPTURE(text);
    CHECK(first_refused(dialect, text) == refused);
  }
}
