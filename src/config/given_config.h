// A config as a caller gives it, kept with what it was parsed to.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "config/config_text.h"

namespace wasmquant::config {

/// Parsed when it is first asked for, and once: a second time only for a name of both a preset and a recipe, if each is
/// asked for.
class GivenConfig {
 public:
  explicit GivenConfig(std::string_view text) : text_(text) {}

  struct Parsed {
    Result<ParsedConfig> config;
    List<Diagnostic> problems;  // every diagnostic
  };
  /// As parse_for_format.
  const Parsed& parsed(bool prefers_recipe = false);

 private:
  std::string text_;
  std::optional<Parsed> as_config_, as_recipe_;
};

}  // namespace wasmquant::config
