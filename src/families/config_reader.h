// Looks up keys of config.json under the names that model generations use. Multimodal models keep the language model's
// keys in "text_config", which takes precedence.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

#include "core/json.h"

namespace wasmquant::families {

/// Removes and returns the first word of "a|b|c".
std::string_view first_word(std::string_view& words) noexcept;

/// Reads one config.json.
class ConfigReader {
 public:
  /// `config` must outlive the reader.
  explicit ConfigReader(const json::Value& config, const char* inner = "text_config") noexcept;

  /// The first of `names` ("a|b") that is present and not null; null if none is.
  const json::Value* find(std::string_view names) const noexcept;
  /// A whole number from 1 to 2^32 - 1.
  std::optional<uint32_t> count(std::string_view names) const noexcept;
  /// A finite number.
  std::optional<double> number(std::string_view names) const noexcept;
  std::string_view text(std::string_view names) const noexcept;
  /// The whole of config.json.
  const json::Value& whole() const noexcept { return *outer_; }

 private:
  const json::Value* outer_;
  const json::Value* inner_;  // the object of that name, or null
};

}  // namespace wasmquant::families
