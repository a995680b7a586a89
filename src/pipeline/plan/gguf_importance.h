// Selects importance-weighted quantization for a GGUF model; importance comes from an imatrix file or from calibration.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "core/diagnostic.h"
#include "core/list.h"
#include "formats/gguf/gguf_metadata.h"
#include "formats/gguf/imatrix.h"
#include "numeric/ggml_type.h"
#include "pipeline/calibration/algorithm_list.h"
#include "pipeline/plan/plan.h"

namespace wasmquant {

class GgufImportance {
 public:
  /// `algorithms`: one that rounds all layers of blocks sees their inputs itself.
  GgufImportance(const PlanOptions& options, const List<RequestedAlgorithm>& algorithms) noexcept;

  /// Errors: those of imatrix::read.
  Status read();
  /// Whether importance exists, or will after calibration.
  bool is_given() const noexcept { return !matrix_.entries.empty() || options_.calibrates || is_of_algorithm_; }

  /// Sets importance in the task of the planned tensor, which becomes `type` under the GGUF name `name`, or adds a
  /// request. Errors: shape-mismatch.
  Status weigh(PlannedTensor& planned, std::string_view name, GgmlType type, List<ActivationRequest>& requests);

  /// quantize.imatrix.file, .dataset, .entries_count, .chunks_count, as llama-quantize writes them.
  void describe(gguf::Metadata& metadata) const;
  /// Reports what was used. Errors: argument-invalid if a matrix covers none of the weights that could use it.
  Status report(std::string_view recipe, List<Diagnostic>& diagnostics) const;

 private:
  void miss(std::string_view name);

  const PlanOptions& options_;
  bool is_of_algorithm_ = false;
  imatrix::Matrix matrix_;
  uint64_t used_ = 0, missing_ = 0;
  bool is_layer_missing_ = false;
  std::string missing_names_;
};

/// Metadata of a written importance matrix.
struct ImatrixOptions {
  imatrix::FileFormat format = imatrix::FileFormat::gguf;
  std::string dataset;      // name of the text; may be empty
  uint64_t chunk_size = 0;  // tokens per sequence; 0: a single sequence
  std::string version;      // library version, as PlanOptions::version
};
/// The importance matrix from "found" (ActivationCalibration::finish). Errors: argument-invalid if it is empty.
Result<std::string> write_imatrix(const Plan& plan, const json::Value& found, const ImatrixOptions& options);

}  // namespace wasmquant
