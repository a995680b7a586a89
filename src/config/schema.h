// JSON Schemas of the dialects that people write by hand, made of the tables that the parsers read by. Not part of the
// module: the build writes them into the package (bindings/schema/main.cpp).
#pragma once
#include "config/spec/spec.h"
#include "core/json.h"

namespace wasmquant::config {

/// JSON Schema 2020-12 of a config in `dialect`: quark, brevitas, aihwkit or gguf. It holds what a parser takes without
/// a diagnostic about keys, kinds and words; rules between keys are checked by the parser alone.
json::Value schema(Dialect dialect);

}  // namespace wasmquant::config
