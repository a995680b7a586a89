#include "pipeline/plan_output/plan_json.h"

#include "config/dialects/write.h"
#include "core/list.h"
#include "pipeline/plan/coverage.h"
#include "pipeline/task/tensor_scales.h"

namespace wasmquant {
namespace {

std::string_view action_of(const TensorTask& task) {
  if (task.is_copy) return "copy";
  if (task.layout.codes == CodeStorage::ggml_rows)
    return info_of(*ggml_type_of(task.layout.components.front().dtype)).block == 1 ? "cast" : "quantize";
  return task.layout.codes == CodeStorage::cast_values ? "cast" : "quantize";
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

}  // namespace wasmquant
