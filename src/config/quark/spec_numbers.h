// The parts of a tensor spec that no dialect spells alike, in this library's own words: `grid`, how scales, floors and
// codes are computed (aihwkit-brevitas specification, 4.3), and `observer_options`. Specs that count as AMD Quark does
// have neither key.
#pragma once
#include <string>

#include "config/reading/object_reader.h"
#include "config/spec/spec.h"
#include "core/diagnostic.h"
#include "core/json.h"

namespace wasmquant::config {

extern const Keys kGrid, kOptions;

json::Value to_json(const GridRule& grid);
json::Value to_json(const ObserverOptions& options);

/// What is missing has Quark's numbers. Everything wrong becomes a diagnostic; the result can then be used all the
/// same.
GridRule read_grid(const json::Value& value, const std::string& where, DiagnosticList& out);
ObserverOptions read_observer_options(const json::Value& value, const std::string& where, DiagnosticList& out);

}  // namespace wasmquant::config
