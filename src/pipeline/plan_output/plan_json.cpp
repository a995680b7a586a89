// Rows of the plan with shared shapes, specs and outputs, and the totals.
#include "pipeline/plan_output/plan_json.h"

#include <algorithm>

#include "config/dialects/write.h"
#include "pipeline/plan/coverage.h"
#include "pipeline/task/tensor_scales.h"

namespace wasmquant {
namespace {

std::string_view action_of(const TensorTask& task) {
  if (task.is_copy) return "copy";
  if (task.layout->codes == CodeStorage::ggml_rows)
    return info_of(*ggml_type_of(task.layout->components.front().dtype)).block == 1 ? "cast" : "quantize";
  return task.layout->codes == CodeStorage::cast_values ? "cast" : "quantize";
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

json::Value type_json(GgmlType type) {
  json::Value out;
  out.set("dtype", info_of(type).name);
  return out;
}

}  // namespace

std::string_view usual_layer(std::string_view name) {
  for (const std::string_view suffix : {".weight", ".bias"})
    if (name.ends_with(suffix)) return name.substr(0, name.size() - suffix.size());
  return name;
}

uint64_t SharedColumns::number_of(const QuantizationSpec& spec) {
  for (const auto& [known, number] : specs_)
    if (known == spec) return number;
  new_specs_.push_back(config::to_canonical_json(spec));
  specs_.emplace_back(spec, spec_count_);
  return spec_count_++;
}

uint64_t SharedColumns::number_of(GgmlType type) {
  for (const auto& [known, number] : types_)
    if (known == type) return number;
  new_specs_.push_back(type_json(type));
  types_.emplace_back(type, spec_count_);
  return spec_count_++;
}

uint64_t SharedColumns::number_of(const Reason& reason) {
  std::string key(1, static_cast<char>(reason.rule));
  key.append(reason.where).append(1, '\0').append(reason.text);
  const auto [known, is_new] = reasons_.try_emplace(std::move(key), reasons_.size());
  if (is_new) new_reasons_.push_back(to_json(reason));
  return known->second;
}

// Outputs of the same suffix, shape, size and file share one entry.
void PlanRows::add_output(json::TextWriter& out, std::string_view layer, const Component& component,
                          std::string_view owner, uint32_t file) {
  const std::string name = component.name_in(owner);
  const bool is_of_layer = name.starts_with(layer);
  std::string text;
  json::TextWriter output(text);
  output.begin('{');
  if (is_of_layer)
    output.member("suffix", std::string_view(name).substr(layer.size()));
  else
    output.member("name", std::string_view(name));
  output.member("dtype", info_of(component.dtype).name);
  output.member("shape", std::span<const uint64_t>(component.shape));
  output.member("bytes", component.bytes);
  output.member("file", uint64_t{file});
  output.end('}');
  if (!is_of_layer) {
    out.add_json(text);
    return;
  }
  const auto [known, is_new] = outputs_.try_emplace(text, outputs_.size());
  if (is_new) new_outputs_.push_back(std::move(text));
  out.add(known->second);
}

void SharedColumns::add_specs(json::TextWriter& out, const WeightLayout& layout, bool is_plain) {
  if (is_plain || layout.codes == CodeStorage::lookup_nibbles) {  // table indexes have no public dtype
    out.member("spec", json::Value());
  } else if (layout.codes == CodeStorage::ggml_rows) {
    out.member("spec", number_of(*ggml_type_of(layout.components.front().dtype)));
  } else {
    out.member("spec", number_of(layout.spec));
    if (layout.stages.empty()) return;
    out.key("stages");
    out.begin('[');
    for (const QuantizationSpec& stage : layout.stages) out.add(number_of(stage));
    out.end(']');
  }
}

void SharedColumns::add_new(json::TextWriter& out) {
  out.member("specs", json::Value(std::exchange(new_specs_, {})));
  out.member("reasons", json::Value(std::exchange(new_reasons_, {})));
}

void PlanRows::add_row(json::TextWriter& out, const PlannedTensor& planned) {
  const ModelTensor& tensor = model_.tensors()[planned.tensor];
  const std::string_view name = planned.name.empty() ? tensor.stored.name : planned.name;
  const std::string_view layer = planned.name.empty() ? tensor.layer : planned.weight.layer;
  out.begin('{');
  out.member("name", name);
  if (layer != usual_layer(name)) out.member("layer", layer);
  out.member("layerType", std::string_view(planned.weight.layer_type));
  out.member("dtype", info_of(tensor.stored.dtype).name);
  out.member("shape", std::span<const uint64_t>(tensor.stored.shape));
  out.member("action", action_of(planned.task));
  add_specs(out, planned.task.layout, planned.task.is_copy);
  out.member("reason", number_of(*planned.reason));
  out.member("bytesBefore", planned.task.source_bytes);
  out.member("bytesAfter", planned.bytes_after);
  out.key("outputs");
  out.begin('[');
  const uint32_t file = planned.task.components.front().file;
  for (const Component& component : planned.outputs())
    add_output(out, layer, component, plan_.stored_layer(planned), file);
  for (const ConstantTensor& known : planned.activations)
    add_output(out, layer, known.component, planned.weight.layer, file);
  out.end(']');
  out.end('}');
}

std::string PlanRows::rows(size_t first, size_t last) {
  std::string text;
  json::TextWriter out(text);
  out.begin('{');
  out.key("tensors");
  out.begin('[');
  for (size_t i = first; i < std::min(last, plan_.tensors.size()); ++i) add_row(out, plan_.tensors[i]);
  out.end(']');
  add_new(out);
  out.key("outputs");
  out.begin('[');
  for (const std::string& output : new_outputs_) out.add_json(output);
  new_outputs_.clear();
  out.end(']');
  out.end('}');
  return text;
}

std::string work_json(const Plan& plan, size_t first, size_t last) {
  std::string text;
  json::TextWriter out(text);
  out.begin('[');
  for (size_t i = first; i < std::min(last, plan.task_count()); ++i) {
    const size_t work = plan.work_of(i);
    const TensorTask& planned = plan.task_of(work);
    out.begin('{');
    out.member("tensor", json::Value(work < plan.tensors.size() ? static_cast<int64_t>(work) : int64_t{-1}));
    out.member("bytes", planned.source_bytes);
    out.member("tiles", planned.tiles);
    const uint32_t passes = planned.is_copy ? 0 : TensorScales::passes(planned.layout, planned.is_observed);
    out.member("observePasses", uint64_t{passes});
    out.member("joinedTiles", planned.joined_tiles());
    out.member("observedInParts", json::Value(!planned.is_copy && TensorScales::shared(planned.layout)));
    std::vector<uint64_t> outputs;
    for (const Location& at : planned.components)
      if (std::find(outputs.begin(), outputs.end(), at.file) == outputs.end()) outputs.push_back(at.file);
    out.member("outputs", std::span<const uint64_t>(outputs));
    out.end('}');
  }
  out.end(']');
  return text;
}

json::Value plan_json(const Plan& plan, const ModelIndex& given, const List<Diagnostic>& diagnostics) {
  json::Array files;
  for (const PlannedFile& file : plan.files) {
    json::Value row;
    row.set("name", file.name);
    row.set("bytes", file.bytes);
    files.push_back(std::move(row));
  }
  json::Value out;
  out.set("format", plan.format);
  out.set("files", std::move(files));
  json::Value totals = totals_json(plan.tensors.size(), plan.quantized_count, given.file_bytes(), plan.file_bytes(),
                                   plan.quantized_elements, plan.quantized_bytes);
  totals.set("coverage", to_json(coverage_of(plan, given)));
  out.set("totals", std::move(totals));
  out.set("diagnostics", to_json(diagnostics));
  out.set("quantizationConfig", plan.quantization_config);
  return out;
}

}  // namespace wasmquant
