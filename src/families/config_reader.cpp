#include "families/config_reader.h"

#include <limits>

namespace wasmquant::families {

std::string_view first_word(std::string_view& words) noexcept {
  const size_t bar = words.find('|');
  const std::string_view word = words.substr(0, bar);
  words = bar == words.npos ? std::string_view() : words.substr(bar + 1);
  return word;
}

ConfigReader::ConfigReader(const json::Value& config, const char* inner) noexcept
    : outer_(&config), inner_(config.find(inner)) {}

const json::Value* ConfigReader::find(std::string_view names) const noexcept {
  for (const json::Value* level : {inner_, outer_}) {
    if (level == nullptr) continue;
    for (std::string_view rest = names; !rest.empty();) {
      const json::Value* value = level->find(first_word(rest));
      if (value != nullptr && !value->is_null()) return value;
    }
  }
  return nullptr;
}

std::optional<uint32_t> ConfigReader::count(std::string_view names) const noexcept {
  const json::Value* value = find(names);
  if (value == nullptr || !value->is_integer()) return std::nullopt;
  const int64_t number = value->as_integer();
  if (number < 1 || number > std::numeric_limits<uint32_t>::max()) return std::nullopt;
  return static_cast<uint32_t>(number);
}

std::optional<double> ConfigReader::number(std::string_view names) const noexcept {
  const json::Value* value = find(names);
  if (value == nullptr || !value->is_finite()) return std::nullopt;
  return value->as_number();
}

std::string_view ConfigReader::text(std::string_view names) const noexcept {
  const json::Value* value = find(names);
  return value == nullptr ? std::string_view() : std::string_view(value->as_string());
}

}  // namespace wasmquant::families
