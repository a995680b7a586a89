// The room's front door: config text in, diagnostics or a Config out.
#pragma once
#include <string_view>

#include "config/dialects/convert.h"
#include "config/spec/spec.h"
#include "core/diagnostic.h"
#include "core/list.h"
#include "core/result.h"

namespace wasmquant::config {

struct ParsedConfig {
  Config config;
  List<Diagnostic> diagnostics;  // warnings and notes
};

/// Everything there is to say about a config; never fails. `text` is JSON or a preset's name; `dialect` is "auto" or a
/// dialect's name.
List<Diagnostic> check(std::string_view text, std::string_view dialect = "auto");

/// The config, or config-invalid whose message sums up the first errors. `problems`, when given, gets every diagnostic
/// either way.
Result<ParsedConfig> parse_text(std::string_view text, std::string_view dialect = "auto",
                                List<Diagnostic>* problems = nullptr);

/// As parse_text, for an output of that format: a name that a preset shares with a recipe (mxfp4) is the recipe's where
/// the format is "gguf".
Result<ParsedConfig> parse_for_format(std::string_view text, std::string_view format,
                                      List<Diagnostic>* problems = nullptr);

/// A config in another dialect's words, with what they cannot say (config/dialects/convert.h); config-invalid when they
/// can say nothing of it. `to`: a dialect's name.
Result<Converted> convert_text(std::string_view text, std::string_view to, List<Diagnostic>* problems = nullptr);

/// One weight spec from its JSON text, or spec-invalid. Errors and `problems` as above.
Result<QuantizationSpec> parse_spec_text(std::string_view text, List<Diagnostic>* problems = nullptr);

}  // namespace wasmquant::config
