// A comparison as JavaScript sees it: rows of pairs in batches, as of a plan, and the tasks that decode them.
#pragma once
#include <string>

#include "pipeline/comparison/comparison.h"
#include "pipeline/plan_output/plan_json.h"

namespace wasmquant {

/// The pairs of a comparison in batches.
class ComparisonRows : SharedColumns {
 public:
  /// It must outlive this object.
  explicit ComparisonRows(const Comparison& comparison) : pairs_(comparison.pairs) {}

  /// JSON text: {tensors: PlannedTensorJson[] of the pairs [first, last), without outputs, specs, reasons: those first
  /// used here, tiles, bytes, byColumns: a number for each pair}.
  std::string rows(size_t first, size_t last);

 private:
  void add_row(json::TextWriter& out, const ComparedPair& pair);

  const List<ComparedPair>& pairs_;
};

/// Tasks 2p and 2p + 1 decode the two sides of pair first + p.
std::string packed_tasks(const Comparison& comparison, size_t first, size_t last);

}  // namespace wasmquant
