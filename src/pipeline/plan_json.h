// Plans and comparisons as the library's users see them (web/lib/types.ts), with the tasks that the scheduler needs.
#pragma once

#include "config/diagnostic.h"
#include "core/json.h"
#include "core/list.h"
#include "pipeline/comparison.h"
#include "pipeline/model_index.h"
#include "pipeline/plan.h"

namespace wasmquant {

json::Value plan_json(const Plan& plan, const ModelIndex& model, const List<Diagnostic>& diagnostics);
json::Value comparison_json(const Comparison& comparison);

}  // namespace wasmquant
