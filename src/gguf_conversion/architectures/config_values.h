// Values of config.json by the words of architectures.def.
#pragma once
#include <optional>
#include <string_view>

#include "families/config_reader.h"

namespace wasmquant::conversion {

/// Reads config.json, and its rope_parameters for what is not there.
class ConfigValues {
 public:
  /// `config` must outlive this.
  explicit ConfigValues(const families::ConfigReader& config) noexcept;

  /// The first of "a|b" that is present and not null; null if none is. "a.b": b of the object a of config.json or item b of
  /// that array, ".b": b of config.json itself.
  const json::Value* find(std::string_view names) const noexcept;
  /// Whether it is true, or a number but 0; of "NAME:TEXT" whether it is that text.
  bool is_true(std::string_view name) const noexcept;
  /// Names between '*', '+', '-' and '/' (rounded down), computed from left to right; numbers among them are themselves, of an array
  /// its first element counts, of "^NAME" the whole part of its square root. Nullopt if one is missing; not finite if one is no number, or with `is_flag` neither true nor
  /// false (1 and 0).
  std::optional<double> number(std::string_view expression, bool is_flag) const;

 private:
  std::optional<double> operand(std::string_view names, bool is_flag) const;

  const families::ConfigReader config_;
  const json::Value* rope_ = nullptr;
};

}  // namespace wasmquant::conversion
