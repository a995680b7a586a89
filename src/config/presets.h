// Named configs. A preset is an ordinary config: its text can be copied, edited and checked like any other.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "config/spec/spec.h"
#include "core/diagnostic.h"

namespace wasmquant::config {

struct Preset {
  std::string_view name;
  std::string_view title;
  std::string_view description;
  std::string_view weight;       // JSON of the weight spec, or of a list of two
  std::string_view inputs = {};  // JSON of what the runtime does to inputs
  std::string_view whole = {};   // JSON of a whole config instead, of another dialect

  /// JSON text of the whole config: the specs for every layer but lm_head, with smaller groups where the size does not
  /// fit.
  std::string config_text() const;
};

std::span<const Preset> presets() noexcept;

/// The preset of that name, or null.
const Preset* preset_named(std::string_view name) noexcept;

/// Its config; an unknown name becomes a diagnostic that lists the names.
std::optional<Config> parse_preset(std::string_view name, DiagnosticList& out);

}  // namespace wasmquant::config
