#include "pipeline/comparison/comparison_json.h"

#include "pipeline/plan_output/plan_json.h"
#include "pipeline/task/packed_tasks.h"

namespace wasmquant {

json::Value comparison_json(const Comparison& comparison) {
  json::Array pairs;
  for (const ComparedPair& pair : comparison.pairs) {
    json::Value report;
    report.set("name", pair.name);
    report.set("layer", pair.weight.layer);
    report.set("layerType", pair.weight.layer_type);
    report.set("dtype", info_of(pair.weight.source).name);
    report.set("shape", pair.weight.shape);
    const bool plain = pair.right.layout.codes == CodeStorage::source_values;
    report.set("action", plain ? (pair.right.layout.source == pair.weight.source ? "copy" : "cast") : "quantize");
    set_spec(report, pair.right.layout, plain);
    report.set("reason", to_json(Reason{Rule::no_config, "", text_of("stored as {}", pair.right_format)}));
    report.set("bytesBefore", pair.bytes_before);
    report.set("bytesAfter", pair.bytes_after);
    json::Value row;
    row.set("name", pair.name);
    row.set("tiles", pair.right.tiles);
    row.set("bytes", pair.bytes_before);
    row.set("byColumns", pair.left.has_column_tiles() || pair.right.has_column_tiles());
    row.set("report", std::move(report));
    pairs.push_back(std::move(row));
  }
  json::Value out;
  out.set("pairs", std::move(pairs));
  out.set("diagnostics", to_json(comparison.diagnostics));
  return out;
}

std::string packed_tasks(const Comparison& comparison) {
  TaskPacker packer;
  for (const ComparedPair& pair : comparison.pairs) {
    packer.add(pair.left);
    packer.add(pair.right);
  }
  return packer.bytes();
}

}  // namespace wasmquant
