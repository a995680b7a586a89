// Configs as text: parsed, checked, and converted to another dialect, with all problems collected.
#include "config/config_text.h"

#include <algorithm>
#include <optional>
#include <span>

#include "config/json_place.h"
#include "config/parse.h"
#include "config/presets.h"
#include "config/spec/vocabulary.h"
#include "core/list.h"
#include "core/message.h"
#include "tools/quark/quark_config.h"

namespace wasmquant::config {
namespace {

// Far above any real config, whose exclude list may name every layer of a large model.
constexpr json::Limits kLimits{.max_bytes = 8u << 20, .max_depth = 32, .max_nodes = 500'000};

// Text that cannot be a JSON config counts as a preset's name.
std::string_view as_name(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  text.remove_prefix(std::min(text.find_first_not_of(kSpace), text.size()));
  text.remove_suffix(text.size() - 1 - text.find_last_not_of(kSpace));
  if (text.empty() || text.size() > 64) return {};
  for (char c : text) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (!letter && !(c >= '0' && c <= '9') && c != '_' && c != '-' && c != '.') return {};
  }
  return text;
}

std::optional<json::Value> parse_json(std::string_view text, DiagnosticList& out) {
  auto value = json::parse(text, kLimits);
  if (value) return std::move(*value);
  const Error& error = value.error();
  const JsonPlace place = place_of(text, error.where);
  // Duplicate keys have a pointer instead.
  const bool has_line = error.where.starts_with("byte ");
  out.error("json-invalid", error.where,
            has_line ? text_of("line {}, column {}: {}", place.line, place.column, error.message) : error.message,
            has_line ? place.excerpt : std::string());
  return std::nullopt;
}

// A name becomes a JSON string.
std::optional<json::Value> value_of(std::string_view text, DiagnosticList& out) {
  if (const std::string_view name = as_name(text); !name.empty()) return json::Value(name);
  return parse_json(text, out);
}

// "…; …; and 4 more": the first errors in one sentence, with the location of the first.
Error summary(ErrorCode code, const DiagnosticList& list) {
  constexpr size_t kShown = 3;
  Error error{code, "", ""};
  size_t shown = 0;
  for (const Diagnostic& item : list.items()) {
    if (item.severity != Severity::error) continue;
    if (shown == kShown) break;
    if (shown++ == 0)
      error.where = item.where;
    else
      error.message += text_of("; at {}: ", item.where);
    error.message += item.message;
    const bool is_excerpt = item.hint.find('\n') != std::string::npos;
    if (!item.hint.empty() && !is_excerpt) error.message += text_of(" ({})", item.hint);
  }
  if (list.errors() > shown) error.message += text_of("; and {} more", list.errors() - shown);
  return error;
}

Result<ParsedConfig> finish(std::optional<Config>&& config, DiagnosticList& list, List<Diagnostic>* problems) {
  if (problems != nullptr) *problems = list.items();
  if (!config || list.errors() != 0) return summary(ErrorCode::config_invalid, list);
  return ParsedConfig{std::move(*config), list.take()};
}

}  // namespace

List<Diagnostic> check(std::string_view text, std::string_view dialect) {
  DiagnosticList list;
  if (const auto value = value_of(text, list)) parse(*value, dialect, list);
  return list.take();
}

Result<ParsedConfig> parse_text(std::string_view text, std::string_view dialect, List<Diagnostic>* problems) {
  DiagnosticList list;
  const auto value = value_of(text, list);
  return finish(value ? parse(*value, dialect, list) : std::nullopt, list, problems);
}

bool names_recipe(std::string_view text) noexcept {
  std::string_view name = as_name(text);
  const size_t open = text.find('"'), close = text.rfind('"');  // a JSON string is a name, too
  if (name.empty() && open < close) name = text.substr(open + 1, close - open - 1);
  return preset_named(name, "gguf") != nullptr;
}

Result<ParsedConfig> parse_value(const json::Value& value, std::string_view dialect) {
  DiagnosticList list;
  return finish(parse(value, dialect, list), list, nullptr);
}

Result<ParsedConfig> parse_for_format(std::string_view text, bool prefers_recipe, List<Diagnostic>* problems) {
  return parse_text(text, prefers_recipe && names_recipe(text) ? "gguf" : "auto", problems);
}

Result<ConvertedConfig> convert_text(std::string_view text, std::string_view to, List<Diagnostic>* problems) {
  const auto dialect = dialect_named(to);
  if (!dialect || info_of(*dialect).write == nullptr)
    return error_at(ErrorCode::argument_invalid, "to", "cannot write dialect {q}; choose one of {}", to,
                    joined(written_dialects()));
  TRY(parsed, parse_text(text, "auto", problems));
  if (parsed.config.dialect == Dialect::gguf)
    return error_at(ErrorCode::config_invalid, parsed.config.where,
                    "a recipe for GGUF files cannot be expressed in other dialects");
  ConvertedConfig converted = convert(parsed.config, *dialect);
  if (!converted.config.is_null()) return converted;
  if (problems != nullptr) *problems = std::move(converted.losses);
  return error_at(ErrorCode::config_invalid, parsed.config.where, "{} cannot express any part of this config", to);
}

Result<QuantizationSpec> parse_spec_text(std::string_view text, List<Diagnostic>* problems) {
  DiagnosticList list;
  std::optional<QuantizationSpec> spec;
  if (const auto value = parse_json(text, list)) spec = parse_spec(*value, "", TensorSlot::weight, list);
  if (problems != nullptr) *problems = list.items();
  if (!spec) return summary(ErrorCode::spec_invalid, list);
  return *spec;
}

Result<QuantizationSpec> parse_spec_value(const json::Value& value) {
  DiagnosticList list;
  const auto spec = parse_spec(value, "", TensorSlot::weight, list);
  if (!spec) return summary(ErrorCode::spec_invalid, list);
  return *spec;
}

}  // namespace wasmquant::config
