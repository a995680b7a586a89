// Plans for users (PlanJson of web/lib/api/plan_types.ts), and the work for the scheduler.
#pragma once
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "core/diagnostic.h"
#include "core/json.h"
#include "core/json_text.h"
#include "core/list.h"
#include "pipeline/model_index/model_index.h"
#include "pipeline/plan/plan.h"

namespace wasmquant {

/// {format, files, totals, diagnostics, quantizationConfig}. `given`: the planned model.
json::Value plan_json(const Plan& plan, const ModelIndex& given, const List<Diagnostic>& diagnostics);

/// What the scheduler needs for each task: [{tensor, file, bytes, tiles, observePasses, observedInParts}].
json::Value work_json(const Plan& plan);

/// A plan's tensors in batches: 100,000 rows are too long for one text. Shared values are numbered as they first occur.
class PlanRows {
 public:
  /// Both must outlive this object.
  PlanRows(const Plan& plan, const ModelIndex& given) : plan_(plan), model_(plan.model ? *plan.model : given) {}

  /// JSON text: {tensors: PlannedTensorJson[] of [first, last), specs, reasons, outputs: those first used here}.
  std::string rows(size_t first, size_t last);

 private:
  uint64_t number_of(const QuantizationSpec& spec);
  uint64_t number_of(GgmlType type);
  uint64_t number_of(const Reason& reason);
  void add_output(json::TextWriter& out, std::string_view layer, const Component& component, uint32_t file);
  void add_specs(json::TextWriter& out, const TensorTask& task);
  void add_row(json::TextWriter& out, const PlannedTensor& planned);

  const Plan& plan_;
  const ModelIndex& model_;
  uint64_t spec_count_ = 0;
  List<std::pair<QuantizationSpec, uint64_t>> specs_;
  List<std::pair<GgmlType, uint64_t>> types_;
  std::unordered_map<std::string, uint64_t> reasons_, outputs_;
  json::Array new_specs_, new_reasons_;
  List<std::string> new_outputs_;
};

/// Sets "spec" of a tensor's row, and "stages" if there are two. `is_plain`: stored as values.
void set_spec(json::Value& row, const WeightLayout& layout, bool is_plain);

}  // namespace wasmquant
