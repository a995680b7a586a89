// The weights that two models have in common, as decoder tasks. Contract: BoundComparison of web/lib/engine/module.ts.
#pragma once
#include "handles/model_index.h"
#include "pipeline/comparison/comparison.h"
#include "pipeline/comparison/comparison_json.h"

namespace wasmquant::bindings {

class BoundComparison : Counted {
 public:
  /// Errors: json-invalid, those of compare_models.
  static Made<BoundComparison> make(const BoundModelIndex& reference, const BoundModelIndex& quantized,
                                    const std::string& options);

  json::Value summary() const;
  JsonText pairs(uint32_t first, uint32_t last) { return {rows_.rows(first, last)}; }
  Region pack(uint32_t first, uint32_t last);

 private:
  explicit BoundComparison(Comparison compared) : compared_(std::move(compared)), rows_(compared_) {}

  Comparison compared_;
  ComparisonRows rows_;
  std::string packed_;
};

}  // namespace wasmquant::bindings
