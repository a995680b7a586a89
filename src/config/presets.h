// Named configs: presets, and llama.cpp's recipes for GGUF files. Each is an ordinary config whose text can be copied,
// edited and checked like any other.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "config/spec/spec.h"
#include "core/diagnostic.h"

namespace wasmquant::config {

/// A named config.
struct Preset {
  std::string_view name;
  std::string_view title;
  std::string_view description;
  std::string_view weight;       // JSON of the weight spec, or of a list of two
  std::string_view inputs = {};  // JSON of what the runtime quantizes inputs to
  std::string_view whole = {};   // JSON of a whole config instead

  /// JSON text of the whole config: the specs for all layers but lm_head, with smaller groups where necessary.
  std::string config_text() const;
};

/// Every name once: presets, then recipes whose names no preset has.
std::span<const Preset> presets() noexcept;

/// The row of that name, or null. A name shared by a preset and a recipe (mxfp4) means the preset, unless `dialect` is
/// "gguf", which finds only recipes.
const Preset* preset_named(std::string_view name, std::string_view dialect = "auto") noexcept;

/// The config of a name. `dialect` is "auto" or a dialect's name. Diagnostics: preset-unknown, which lists the names;
/// dialect-mismatch when the config is in another dialect.
std::optional<Config> parse_preset(std::string_view name, std::string_view dialect, DiagnosticList& out);

}  // namespace wasmquant::config
