// Plans as the library's users see them (web/lib/api/plan_types.ts), with the tasks that the scheduler needs.
#pragma once

#include "core/diagnostic.h"
#include "core/json.h"
#include "core/list.h"
#include "pipeline/model_index/model_index.h"
#include "pipeline/plan/plan.h"

namespace wasmquant {

json::Value plan_json(const Plan& plan, const ModelIndex& model, const List<Diagnostic>& diagnostics);
/// Sets "spec" of a tensor's row, and "stages" where it is one of two. `is_plain`: stored as values.
void set_spec(json::Value& row, const WeightLayout& layout, bool is_plain);

}  // namespace wasmquant
