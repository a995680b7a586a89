#include "pipeline/comparison/comparison_json.h"

#include "pipeline/plan_output/plan_json.h"

namespace wasmquant {

json::Value comparison_json(const Comparison& comparison) {
  json::Array pairs;
  for (const ComparedPair& pair : comparison.pairs) {
    const auto task_text = [](const TensorTask& task, const std::string& format, WeightDescription weight,
                              bool by_columns) {
      weight.source = task.layout.source;
      json::Value outer;
      outer.set("task", write_task(task, format, weight));
      outer.set("by_columns", by_columns);
      outer.set("interleaved_rows", static_cast<int64_t>(task.change.interleaved_rows));
      outer.set("is_transposed", task.change.is_transposed);
      outer.set("adds_one", task.change.adds_one);
      return json::write(outer);
    };
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
    row.set("left", task_text(pair.left, pair.left_format, pair.weight, pair.by_columns));
    row.set("right", task_text(pair.right, pair.right_format, pair.right_weight, pair.right_by_columns));
    row.set("tiles", pair.right.tiles);
    row.set("bytes", pair.bytes_before);
    row.set("report", std::move(report));
    pairs.push_back(std::move(row));
  }
  json::Value out;
  out.set("pairs", std::move(pairs));
  out.set("diagnostics", to_json(comparison.diagnostics));
  return out;
}

}  // namespace wasmquant
