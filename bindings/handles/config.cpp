#include "handles/config.h"

#include "pipeline/calibration/calibration_steps.h"

namespace wasmquant::bindings {

Result<json::Value> BoundConfig::calibrated_algorithms(List<Diagnostic>& diagnostics) {
  const config::GivenConfig::Parsed& parsed = given_.parsed();
  if (!parsed.config) {
    diagnostics = parsed.problems;
    return parsed.config.error();
  }
  json::Array rows;
  for (CalibratedAlgorithm& algorithm : wasmquant::calibrated_algorithms(parsed.config->config)) {
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
  return json::Value(std::move(rows));
}

}  // namespace wasmquant::bindings
