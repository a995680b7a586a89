// Numeric rules of a tensor spec that have no common spelling among dialects, as keys of this library: `grid`, how
// scales, floors and codes are computed (aihwkit-brevitas specification, 4.3), and `observer_options`. Specs with AMD
// Quark's numbers have neither key.
#pragma once
#include <string>

#include "config/reading/object_reader.h"
#include "config/spec/spec.h"
#include "core/diagnostic.h"
#include "core/json.h"

namespace wasmquant::config {

/// The keys of `grid` and `observer_options`.
extern const Keys kGrid, kOptions;

/// The object of a tensor spec's `grid` or `observer_options`.
json::Value to_json(const RoundingGrid& grid);
json::Value to_json(const ObserverOptions& options);

/// Missing keys get Quark's numbers. Errors become diagnostics; the result can be used even then.
RoundingGrid read_grid(const json::Value& value, const std::string& where, DiagnosticList& out);
/// Like read_grid, for `observer_options`.
ObserverOptions read_observer_options(const json::Value& value, const std::string& where, DiagnosticList& out);

}  // namespace wasmquant::config
