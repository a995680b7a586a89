// Comparisons as the scheduler needs them: a row a pair, with what a report says of it, and the tasks of both sides.
#pragma once
#include <string>

#include "core/json.h"
#include "pipeline/comparison/comparison.h"

namespace wasmquant {

/// {"pairs": [{"name", "tiles", "bytes", "byColumns", "report"}], "diagnostics"}; byColumns: tiles of either side are
/// columns.
json::Value comparison_json(const Comparison& comparison);
/// Tasks for decoders, packed: left and right of the first pair, of the second, ...
std::string packed_tasks(const Comparison& comparison);

}  // namespace wasmquant
