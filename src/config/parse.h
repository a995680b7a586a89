// A config in any dialect, or a preset's name, to a Config.
#pragma once
#include <optional>
#include <string_view>

#include "config/spec/spec.h"
#include "core/diagnostic.h"
#include "core/json.h"

namespace wasmquant::config {

/// A config, a `quantization_config` block, a whole config.json that has one, or a preset's name as a JSON string.
/// `dialect` is "auto" or a dialect's name. Use the result only if `out` got no error; nullopt if the text is not a
/// config.
std::optional<Config> parse(const json::Value& value, std::string_view dialect, DiagnosticList& out);

}  // namespace wasmquant::config
