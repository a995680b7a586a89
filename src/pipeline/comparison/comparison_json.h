// Comparisons for the scheduler: one row per pair, and the tasks of both sides.
#pragma once
#include <string>

#include "core/json.h"
#include "pipeline/comparison/comparison.h"

namespace wasmquant {

/// {"pairs": [{"name", "tiles", "bytes", "byColumns", "report"}], "diagnostics"}; byColumns: one side has column tiles.
json::Value comparison_json(const Comparison& comparison);
/// Packed decoder tasks: left and right of the first pair, of the second, ...
std::string packed_tasks(const Comparison& comparison);

}  // namespace wasmquant
