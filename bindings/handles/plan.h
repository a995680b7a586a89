// The plan of a run. Contract: BoundPlan of web/lib/engine/module.ts.
#pragma once
#include <optional>

#include "handles/config.h"
#include "handles/model_index.h"
#include "pipeline/plan/plan.h"
#include "pipeline/plan_output/plan_json.h"

namespace wasmquant::bindings {

/// Bytes that a plan reads while it is made.
struct PlanBytes {
  std::span<const uint8_t> constants, imatrix;
};

class BoundPlan : Counted {
 public:
  /// `options`: as PlanOptions of web/lib. Errors: json-invalid, those of original_model and make_plan.
  static Made<BoundPlan> make(const BoundModelIndex& model, BoundConfig& config, const std::string& options,
                              PlanBytes bytes, List<Diagnostic>& diagnostics);

  json::Value to_json() const { return plan_json(plan_, model_, diagnostics_); }
  JsonText tensors(uint32_t first, uint32_t last) { return {rows_.rows(first, last)}; }
  JsonText work(uint32_t first, uint32_t last) const { return {work_json(plan_, first, last)}; }
  Region pack(uint32_t first, uint32_t last);
  /// Error of these: argument-invalid for a file that does not exist.
  Result<json::Value> file_literals(uint32_t file) const;
  Result<Region> literal_bytes(uint32_t file, uint32_t piece);
  std::string activation_requests() const { return write_requests(plan_.requests); }
  json::Value constants() const;
  /// Errors: json-invalid, those of write_imatrix.
  Result<Region> importance_matrix(const std::string& options);
  std::string shard_map() const { return plan_.shard_map; }
  /// Errors: those of output_config.
  Result<json::Value> output_config() const;

 private:
  BoundPlan(std::unique_ptr<ModelIndex> original, const ModelIndex& model, Plan plan, List<Diagnostic> diagnostics)
      : original_(std::move(original)),
        model_(model),
        plan_(std::move(plan)),
        diagnostics_(std::move(diagnostics)),
        rows_(plan_, model_) {}

  std::unique_ptr<ModelIndex> original_;  // of a quantized checkpoint
  const ModelIndex& model_;
  Plan plan_;
  List<Diagnostic> diagnostics_;
  PlanRows rows_;
  std::string imatrix_, packed_, header_text_;
};

}  // namespace wasmquant::bindings
