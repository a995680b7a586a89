// Configs for GGUF files: a llama.cpp recipe, and exceptions.
//   {"dialect": "gguf", "recipe": "q4_k_m", "layers": {"*.ffn_down": "q6_k"}, "exclude": ["output"]}
// Patterns match layer names of the model or of GGUF. pre_quant_opt_config and algo_config may list algorithms that
// change float weights (rotation, cle, smooth, awq), as in Quark's configs.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "config/reading/object_reader.h"
#include "config/spec/spec.h"
#include "core/diagnostic.h"
#include "core/json.h"
#include "core/list.h"
#include "numeric/ggml_type.h"

namespace wasmquant::config {

/// The content of a gguf config.
struct GgufConfig {
  std::string recipe;  // a name of tables/recipes.def
  bool pure = false;   // its main type everywhere, as llama-quantize --pure
  bool keeps_output = false;
  std::optional<GgmlType> output_type, embedding_type;
  List<std::pair<std::string, GgmlType>> layers;  // pattern, type; the first match wins
  List<std::string> exclude;
};

/// Of a Config whose dialect is gguf.
GgufConfig gguf_config(const Config& config);

/// Checks and completes it; the result is in Config::source.
Config parse_gguf(const json::Value& value, const std::string& where, DiagnosticList& out);

}  // namespace wasmquant::config
