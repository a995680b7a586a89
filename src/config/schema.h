// JSON Schemas of the dialects, derived from the parsers' tables. Not part of the module: the
// build writes them into the package (bindings/schema/main.cpp).
#pragma once
#include "config/spec/spec.h"
#include "core/json.h"

namespace wasmquant::config {

/// JSON Schema 2020-12 of a config in `dialect`. Covers keys, kinds and words; only
/// the parser checks rules between keys.
json::Value schema(Dialect dialect);

}  // namespace wasmquant::config
