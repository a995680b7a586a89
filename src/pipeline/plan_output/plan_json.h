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

/// JSON text: what the scheduler needs for each of the tasks [first, last), PlanTask[] of web/lib/engine/module.ts.
std::string work_json(const Plan& plan, size_t first, size_t last);

/// The layer that a row without "layer" belongs to: the name without ".weight" or ".bias".
std::string_view usual_layer(std::string_view name);

/// What rows of tensors have in common, numbered as it first occurs: each batch of rows brings what is new in it.
class SharedColumns {
 protected:
  uint64_t number_of(const QuantizationSpec& spec);
  uint64_t number_of(GgmlType type);
  uint64_t number_of(const Reason& reason);
  /// Members "spec", a number or null, and "stages" if there are two. `is_plain`: stored as values.
  void add_specs(json::TextWriter& out, const WeightLayout& layout, bool is_plain);
  /// Members "specs" and "reasons": those that are new since the last call.
  void add_new(json::TextWriter& out);

 private:
  uint64_t spec_count_ = 0;
  List<std::pair<QuantizationSpec, uint64_t>> specs_;
  List<std::pair<GgmlType, uint64_t>> types_;
  std::unordered_map<std::string, uint64_t> reasons_;
  json::Array new_specs_, new_reasons_;
};

/// A plan's tensors in batches: 100,000 rows are too long for one text.
class PlanRows : SharedColumns {
 public:
  /// Both must outlive this object.
  PlanRows(const Plan& plan, const ModelIndex& given) : plan_(plan), model_(plan.model ? *plan.model : given) {}

  /// JSON text: {tensors: PlannedTensorJson[] of [first, last), specs, reasons, outputs: those first used here}.
  std::string rows(size_t first, size_t last);

 private:
  /// `owner`: the layer that the component is of.
  void add_output(json::TextWriter& out, std::string_view layer, const Component& component, std::string_view owner,
                  uint32_t file);
  void add_row(json::TextWriter& out, const PlannedTensor& planned);

  const Plan& plan_;
  const ModelIndex& model_;
  std::unordered_map<std::string, uint64_t> outputs_;
  List<std::string> new_outputs_;
};

}  // namespace wasmquant
