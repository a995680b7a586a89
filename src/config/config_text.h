// Entry points of this folder: config text in, diagnostics or a Config out.
#pragma once
#include <string_view>

#include "config/dialects/convert.h"
#include "config/spec/spec.h"
#include "core/diagnostic.h"
#include "core/json.h"
#include "core/list.h"
#include "core/result.h"

namespace wasmquant::config {

/// A valid config.
struct ParsedConfig {
  Config config;
  List<Diagnostic> diagnostics;  // warnings and notes
};

/// All diagnostics of a config; never fails. `text`: JSON or a preset's name; `dialect`: "auto" or a dialect's name.
List<Diagnostic> check(std::string_view text, std::string_view dialect = "auto");

/// The config, or config-invalid with a summary of the first errors. `problems`, if given, gets every diagnostic.
Result<ParsedConfig> parse_text(std::string_view text, std::string_view dialect = "auto",
                                List<Diagnostic>* problems = nullptr);

/// Like parse_text, of a value that is in memory already.
Result<ParsedConfig> parse_value(const json::Value& value, std::string_view dialect);

/// Whether the text is the name of a recipe for GGUF files, which may also be a preset's (mxfp4).
bool names_recipe(std::string_view text) noexcept;

/// Like parse_text; if `prefers_recipe`, a name shared by a preset and a recipe means the recipe.
Result<ParsedConfig> parse_for_format(std::string_view text, bool prefers_recipe, List<Diagnostic>* problems = nullptr);

/// A config converted to another dialect, with what was lost (config/dialects/convert.h); config-invalid if the dialect
/// cannot express any part of it. `to`: a dialect's name.
Result<ConvertedConfig> convert_text(std::string_view text, std::string_view to, List<Diagnostic>* problems = nullptr);

/// One weight spec from its JSON text, or spec-invalid. Errors and `problems` as above.
Result<QuantizationSpec> parse_spec_text(std::string_view text, List<Diagnostic>* problems = nullptr);
Result<QuantizationSpec> parse_spec_value(const json::Value& value);

}  // namespace wasmquant::config
