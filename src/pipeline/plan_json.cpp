#include "pipeline/plan_json.h"

#include "config/write.h"
#include "core/list.h"
#include "pipeline/coverage.h"
#include "pipeline/tensor_scales.h"

namespace wasmquant {
namespace {

std::string_view action_of(const TensorTask& task) {
  if (task.is_copy) return "copy";
  if (task.layout.codes == CodeStorage::ggml_rows)
    return info_of(*ggml_type_of(task.layout.components.front().dtype)).block == 1 ? "cast" : "quantize";
  return task.layout.codes == CodeStorage::cast_values ? "cast" : "quantize";
}

// The spec of the codes, and the list it is part of.
void set_spec(json::Value& row, const WeightLayout& layout, bool is_plain) {
  if (!is_plain && layout.codes == CodeStorage::ggml_rows) {
    json::Value type;
    type.set("dtype", info_of(*ggml_type_of(layout.components.front().dtype)).name);
    row.set("spec", std::move(type));
    return;
  }
  if (!is_plain && layout.codes == CodeStorage::lookup_nibbles) {  // numbers of a table are no dtype of ours
    row.set("spec", json::Value());
    return;
  }
  row.set("spec", is_plain ? json::Value() : config::to_canonical_json(layout.spec));
  if (is_plain || layout.stages.empty()) return;
  json::Array stages;
  for (const QuantizationSpec& stage : layout.stages) stages.push_back(config::to_canonical_json(stage));
  row.set("stages", std::move(stages));
}

json::Value totals_json(uint64_t tensors, uint64_t quantized, uint64_t before, uint64_t after, uint64_t elements,
                        uint64_t weight_bytes) {
  json::Value out;
  out.set("tensors", tensors);
  out.set("quantized", quantized);
  out.set("bytesBefore", before);
  out.set("bytesAfter", after);
  out.set("bitsPerWeight",
          elements == 0 ? 0.0 : 8.0 * static_cast<double>(weight_bytes) / static_cast<double>(elements));
  return out;
}

}  // namespace

json::Value plan_json(const Plan& plan, const ModelIndex& given, const List<Diagnostic>& diagnostics) {
  const ModelIndex& model = plan.model ? *plan.model : given;
  json::Array tensors, tasks, files;
  for (size_t i = 0; i < plan.tensors.size(); ++i) {
    const PlannedTensor& planned = plan.tensors[i];
    const ModelTensor& tensor = model.tensors()[planned.tensor];
    json::Value row;
    row.set("name", planned.name.empty() ? tensor.stored.name : planned.name);
    row.set("layer", planned.name.empty() ? tensor.layer : planned.weight.layer);
    row.set("layerType", planned.weight.layer_type);
    row.set("dtype", info_of(tensor.stored.dtype).name);
    row.set("shape", tensor.stored.shape);
    row.set("action", action_of(planned.task));
    set_spec(row, planned.task.layout, planned.task.is_copy);
    row.set("reason", to_json(planned.reason));
    row.set("bytesBefore", planned.task.source_bytes);
    row.set("bytesAfter", planned.bytes_after);
    json::Array outputs;
    const auto add_output = [&](const Component& component) {
      json::Value output;
      output.set("name", component.name);
      output.set("dtype", info_of(component.dtype).name);
      output.set("shape", component.shape);
      output.set("bytes", component.bytes);
      output.set("file", plan.files[planned.task.components.front().file].name);
      outputs.push_back(std::move(output));
    };
    for (const Component& component : planned.outputs()) add_output(component);
    for (const KnownTensor& known : planned.activations) add_output(known.component);
    row.set("outputs", std::move(outputs));
    tensors.push_back(std::move(row));
  }
  for (size_t i = 0; i < plan.task_count(); ++i) {
    const size_t work = plan.work_of(i);
    const TensorTask& planned = plan.task_of(work);
    json::Value task;
    task.set("tensor", work < plan.tensors.size() ? static_cast<int64_t>(work) : int64_t{-1});
    task.set("file", static_cast<int64_t>(planned.source.file));
    task.set("bytes", planned.source_bytes);
    task.set("tiles", planned.tiles);
    task.set("observePasses", planned.is_copy ? 0 : static_cast<int64_t>(TensorScales::passes(planned.layout)));
    task.set("observedInParts", !planned.is_copy && TensorScales::shared(planned.layout));
    tasks.push_back(std::move(task));
  }
  for (const PlannedFile& file : plan.files) {
    json::Value row;
    row.set("name", file.name);
    row.set("bytes", file.bytes);
    files.push_back(std::move(row));
  }
  json::Value out;
  out.set("format", plan.format);
  out.set("tensors", std::move(tensors));
  out.set("files", std::move(files));
  const Coverage coverage = coverage_of(plan, given);
  json::Value totals = totals_json(plan.tensors.size(), plan.quantized_count, plan.bytes_before, plan.bytes_after,
                                   plan.quantized_elements, plan.quantized_bytes);
  totals.set("coverage", to_json(coverage));
  out.set("totals", std::move(totals));
  out.set("diagnostics", to_json(diagnostics));
  out.set("quantizationConfig", plan.quantization_config);
  out.set("tasks", std::move(tasks));
  return out;
}

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
