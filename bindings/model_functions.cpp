// Plans of forward passes. Contracts: web/lib/engine/module.ts.
#include <emscripten/bind.h>

#include <algorithm>
#include <string>

#include "border/reply.h"
#include "handles/model_index.h"
#include "pipeline/forward/forward_plan.h"
#include "pipeline/forward/packed_architecture.h"

namespace wasmquant::bindings {
namespace {

/// The steps of a forward pass, see forward_plan_json; "architecture" and "work", both packed. `described`: the model in
/// whose folder config.json is; a model that describes itself needs none. `options`: {"tileBytes", "columnTileBytes",
/// "longest", "use"}. Errors: json-invalid, those of plan_forward.
Result<Parts> planned_pass(const ModelIndex& model, const ModelIndex& described, const std::string& options_text) {
  TRY(options, json::parse(options_text));
  const bool describes_itself = &model == &described && model.format().carries_config;
  const Result<json::Value> none = json::Value(), &config = describes_itself ? none : described.folder_config();
  if (!config) return config.error();
  const ForwardUse use = forward_use_named(options["use"].as_string());
  TRY(plan, plan_forward(model, *config, tile_bytes_of(options), use));
  static std::string architecture, work;
  architecture = packed_architecture(plan.architecture);
  work = packed_tasks(plan);
  Parts out;
  out.facts = forward_plan_json(plan, static_cast<size_t>(std::max<int64_t>(options["longest"].as_integer(), 1)));
  out.add("architecture", region_of(architecture));
  out.add("work", region_of(work));
  return out;
}

Address forward_plan(const BoundModelIndex& model, const BoundModelIndex& described, std::string options) {
  return reply(planned_pass(model.index(), described.index(), options));
}

}  // namespace
}  // namespace wasmquant::bindings

EMSCRIPTEN_BINDINGS(model_functions) {
  using namespace emscripten;
  using namespace wasmquant::bindings;
  function("forwardPlan", &forward_plan);
}
