// Facts about forward passes from a model's config.json and a quantization config. Contracts: web/lib/engine/module.ts.
#include <emscripten/bind.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "border/reply.h"
#include "config/config_text.h"
#include "core/message.h"
#include "handles/model_index.h"
#include "pipeline/calibration/calibration_steps.h"
#include "pipeline/forward/forward_plan.h"

namespace wasmquant::bindings {
namespace {

void add_constants(const json::Value& value, json::Array& path, json::Array& out) {
  if (value.is_number() && !value.is_finite()) {
    json::Value& row = out.emplace_back();
    row.set("path", json::Value(path));
    row.set("value", std::isnan(value.as_number()) ? "NaN" : value.as_number() > 0 ? "Infinity" : "-Infinity");
  }
  for (const auto& [name, member] : value.members()) {
    path.emplace_back(name);
    add_constants(member, path, out);
    path.pop_back();
  }
  for (const json::Value& item : value.items()) {
    path.emplace_back(static_cast<int64_t>(&item - value.items().data()));
    add_constants(item, path, out);
    path.pop_back();
  }
}

/// Parses config.json to {"config": object, "constants": [{"path", "value"}]}: `constants` are the numbers JSON cannot
/// express ("Infinity", "-Infinity", "NaN"), null in `config`; a path has names and indexes. Errors: json-invalid.
std::string model_config(std::string text) {
  auto config = json::parse(text, json::kPython);
  if (!config)
    return fail(
        error_at(ErrorCode::json_invalid, "config.json", "{}: {}", config.error().where, config.error().message));
  if (!config->is_object())
    return fail(error_at(ErrorCode::json_invalid, "config.json", "expected a JSON object, found {}",
                         json::describe(config->kind())));
  json::Array path, constants;
  add_constants(*config, path, constants);
  json::Value out;
  out.set("config", std::move(*config));
  out.set("constants", std::move(constants));
  return reply(out);
}

/// The steps of a forward pass, see forward_plan_json; "work": packed tasks. `options`: {"tileBytes", "columnTileBytes",
/// "longest", "use"}. Errors: json-invalid, those of plan_forward.
Result<Parts> planned_pass(const ModelIndex& model, const std::string& config, const std::string& options_text) {
  TRY(options, json::parse(options_text));
  const std::string& given = options["use"].as_string();
  const ForwardUse use = given == "embed" ? ForwardUse::embed
                         : given == "run" ? ForwardUse::run
                                          : ForwardUse::calibrate;
  TRY(plan, plan_forward(model, config, tile_bytes_of(options), use));
  static std::string work;
  work = packed_tasks(plan);
  Parts out;
  out.facts = forward_plan_json(plan, static_cast<size_t>(std::max<int64_t>(options["longest"].as_integer(), 1)));
  out.add("work", region_of(work));
  return out;
}

Address forward_plan(const BoundModelIndex& model, std::string config, std::string options) {
  return reply(planned_pass(model.index(), config, options));
}

/// The algorithms of a config that process a model block by block. Errors: those of parse_text.
std::string calibrated_algorithms(std::string config) {
  List<Diagnostic> problems;
  const auto parsed = config::parse_text(config, "auto", &problems);
  if (!parsed) return fail(parsed.error(), problems);
  json::Array rows;
  for (CalibratedAlgorithm& algorithm : wasmquant::calibrated_algorithms(parsed->config)) {
    json::Value row;
    row.set("name", std::move(algorithm.name));
    row.set("needsInputs", algorithm.needs_inputs);
    row.set("changesInputs", algorithm.changes_inputs);
    row.set("rotatesStream", algorithm.rotates_stream);
    row.set("needsReference", algorithm.needs_reference);
    row.set("holdsOut", algorithm.holds_out);
    row.set("isImplied", algorithm.is_implied);
    rows.push_back(std::move(row));
  }
  return reply(json::Value(std::move(rows)));
}

}  // namespace
}  // namespace wasmquant::bindings

EMSCRIPTEN_BINDINGS(model_functions) {
  using namespace emscripten;
  using namespace wasmquant::bindings;
  function("modelConfig", &model_config);
  function("forwardPlan", &forward_plan);
  function("calibratedAlgorithms", &calibrated_algorithms);
}
