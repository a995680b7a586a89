// Comparisons as the scheduler needs them: a row a pair, with the tasks of both sides and the row of its report.
#pragma once
#include "core/json.h"
#include "pipeline/comparison/comparison.h"

namespace wasmquant {

json::Value comparison_json(const Comparison& comparison);

}  // namespace wasmquant
