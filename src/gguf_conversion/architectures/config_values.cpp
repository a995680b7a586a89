#include "gguf_conversion/architectures/config_values.h"

#include <cmath>

#include "core/decimal.h"

namespace wasmquant::conversion {

ConfigValues::ConfigValues(const families::ConfigReader& config) noexcept : config_(config) {
  const json::Value* const rope = config.find("rope_parameters|rope_scaling");
  const json::Value* const global = rope == nullptr ? nullptr : rope->find("full_attention");
  rope_ = global != nullptr ? global : rope;
}

namespace {

// "a.b.c" of an object.
const json::Value* at_path(const json::Value* value, std::string_view path) noexcept {
  while (value != nullptr && !path.empty()) {
    const size_t dot = path.find('.');
    const std::string_view name = path.substr(0, dot);
    const size_t place = name.size() == 1 ? static_cast<size_t>(name[0] - '0') : value->items().size();
    value = place < value->items().size() ? &value->items()[place] : value->find(name);
    path = dot == path.npos ? std::string_view() : path.substr(dot + 1);
  }
  return value == nullptr || value->is_null() ? nullptr : value;
}

}  // namespace

const json::Value* ConfigValues::find(std::string_view names) const noexcept {
  for (std::string_view rest = names; names.find('.') != names.npos && !rest.empty();) {
    const std::string_view word = families::first_word(rest);
    const bool is_path = word.find('.') != word.npos;
    const json::Value* const value =
        is_path ? at_path(&config_.whole(), word.substr(word.starts_with('.') ? 1 : 0)) : config_.find(word);
    if (value != nullptr) return value;
  }
  if (const json::Value* own = config_.find(names)) return own;
  for (std::string_view rest = names; rope_ != nullptr && !rest.empty();) {
    const json::Value* const value = rope_->find(families::first_word(rest));
    if (value != nullptr && !value->is_null()) return value;
  }
  return nullptr;
}

bool ConfigValues::is_true(std::string_view name) const noexcept {
  const size_t colon = name.find(':');
  const json::Value* const value = find(name.substr(0, colon));
  if (colon != name.npos) return value != nullptr && value->as_string() == name.substr(colon + 1);
  return value != nullptr && (value->as_bool() || value->as_integer() != 0);
}

std::optional<double> ConfigValues::number(std::string_view expression, bool is_flag) const {
  double total = 0;
  char operation = '+';
  while (!expression.empty()) {
    const size_t at = expression.find_first_of("*+-/");
    const auto value = operand(expression.substr(0, at), is_flag);
    if (!value) return std::nullopt;
    if (operation == '+') total += *value;
    if (operation == '-') total -= *value;
    if (operation == '*') total *= *value;
    if (operation == '/') total = std::floor(total / *value);
    if (at == expression.npos) return total;
    operation = expression[at];
    expression.remove_prefix(at + 1);
  }
  return std::nullopt;
}

std::optional<double> ConfigValues::operand(std::string_view names, bool is_flag) const {
  if (names.starts_with('^')) {
    const auto square = operand(names.substr(1), is_flag);
    return square ? std::floor(std::sqrt(*square)) : square;
  }
  if (!names.empty() && names[0] >= '0' && names[0] <= '9') return parse_decimal(names);
  const json::Value* found = find(names);
  if (found == nullptr) return std::nullopt;
  if (found->is_array() && !found->items().empty()) found = &found->items().front();
  if (found->is_bool()) return is_flag ? (found->as_bool() ? 1 : 0) : std::nan("");
  return found->is_finite() && !is_flag ? found->as_number() : std::nan("");
}

}  // namespace wasmquant::conversion
