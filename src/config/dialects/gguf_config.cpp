#include "config/dialects/gguf_config.h"

#include "config/dialects/dialects.h"
#include "config/reading/algorithm_config.h"
#include "config/reading/key_row.h"
#include "core/message.h"

namespace wasmquant::config {
namespace {

constexpr char kRecipeWords[] =
#define WASMQUANT_RECIPE(name, file_type, type, pure, use) #name "|"
#include "tables/recipes.def"
#undef WASMQUANT_RECIPE
    "q3_k|q4_k|q5_k";

constexpr Key kRows[] = {
#define WASMQUANT_RECIPE_KEY WASMQUANT_KEY_ROW
#include "config/dialects/gguf_keys.def"
};
constexpr Keys kGguf{kRows, "GgufConfig"};

std::optional<GgmlType> type_of(const json::Value& value) {
  const auto type = value.is_string() ? ggml_type_named(value.as_string()) : std::nullopt;
  return type && info_of(*type).can_quantize() ? type : std::nullopt;
}

void check_type(const json::Value& value, const std::string& where, DiagnosticList& out) {
  if (value.is_null() || type_of(value)) return;
  List<std::string_view> names;
  for (const GgmlTypeInfo& row : kGgmlTypes)
    if (row.can_quantize()) names.push_back(row.name);
  unknown_word(value.is_string() ? std::string_view(value.as_string()) : json::describe(value.kind()), where,
               std::span(names.data(), names.size()), out);
}

}  // namespace

Config parse_gguf(const json::Value& value, const std::string& where, DiagnosticList& out) {
  Config config;
  config.dialect = Dialect::gguf;
  config.where = where;
  config.source = apply_defaults(value, where, kGguf, out);
  const json::Value& source = config.source;
  if (!source["recipe"].is_string() && value.is_object())
    out.error_in("key-missing", where, nullptr, "add \"recipe\": \"q4_k_m\"", "recipe is missing");
  check_type(source["output_type"], pointer_to(where, "output_type"), out);
  check_type(source["embedding_type"], pointer_to(where, "embedding_type"), out);
  for (const auto& [pattern, type] : source["layers"].members()) {
    const std::string at = pointer_to(pointer_to(where, "layers"), pattern);
    check_pattern(pattern, at, out);
    if (type.is_null())
      out.error_in("type-invalid", at, nullptr, nullptr, "expected the name of a type");
    else
      check_type(type, at, out);
  }
  const ObjectReader reader(source, where, kRows, out);
  for (const char* key : {"pre_quant_opt_config", "algo_config"}) check_algorithms(reader, key, {}, false);
  for (const json::Value& name : source["exclude"].items()) config.exclude.push_back(name.as_string());
  return config;
}

constinit const DialectInfo gguf_dialect{
    .keys = []() noexcept -> const Keys& { return kGguf; },
    .read = parse_gguf,
    .own_keys = "recipe",
    .has_named_algorithms = true,
};

GgufConfig gguf_config(const Config& config) {
  const json::Value& source = config.source;
  GgufConfig out;
  out.recipe = source["recipe"].as_string();
  out.pure = source["pure"].as_bool();
  out.keeps_output = source["keep_output"].as_bool();
  out.output_type = type_of(source["output_type"]);
  out.embedding_type = type_of(source["embedding_type"]);
  for (const auto& [pattern, type] : source["layers"].members()) out.layers.emplace_back(pattern, *type_of(type));
  out.exclude = config.exclude;
  return out;
}

}  // namespace wasmquant::config
