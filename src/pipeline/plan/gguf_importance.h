// Which weights of a GGUF model are quantized by the importance of their columns, and whence it comes: a matrix that
// llama-imatrix or this library wrote, or what calibration saw in this run.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "core/diagnostic.h"
#include "core/list.h"
#include "formats/gguf/gguf_metadata.h"
#include "formats/gguf/imatrix.h"
#include "numeric/ggml_type.h"
#include "pipeline/plan/plan.h"

namespace wasmquant {

class GgufImportance {
 public:
  explicit GgufImportance(const PlanOptions& options) noexcept : options_(options) {}

  /// Errors: those of imatrix::read.
  Status read();
  /// Whether there is any, or will be once calibration has run.
  bool is_given() const noexcept { return !matrix_.entries.empty() || options_.calibrates; }

  /// Importance for the planned tensor, to be `type` and called `name` in GGUF: put into its task, or asked for in
  /// `requests`. Errors: shape-mismatch.
  Status weigh(PlannedTensor& planned, std::string_view name, GgmlType type, List<ActivationRequest>& requests);

  /// quantize.imatrix.file, .dataset, .entries_count, .chunks_count, as llama-quantize writes them.
  void describe(gguf::Metadata& metadata) const;
  /// What was used. Errors: argument-invalid when a matrix has nothing for any of the weights that could use it.
  Status report(std::string_view recipe, List<Diagnostic>& diagnostics) const;

 private:
  void miss(std::string_view name);

  const PlanOptions& options_;
  imatrix::Matrix matrix_;
  uint64_t used_ = 0, missing_ = 0;
  bool is_layer_missing_ = false;
  std::string missing_names_;
};

/// What an importance matrix is written with, besides what was found.
struct ImatrixOptions {
  imatrix::FileFormat format = imatrix::FileFormat::gguf;
  std::string dataset;      // what the text is called; may be empty
  uint64_t chunk_size = 0;  // tokens of a sequence; 0: all were one
  std::string version;      // of the library, as PlanOptions::version
};
/// The importance matrix of what calibration found ("found" of ActivationCalibration::finish) for the requests of a
/// GGUF plan. Errors: argument-invalid when there is nothing in it.
Result<std::string> write_imatrix(const Plan& plan, const json::Value& found, const ImatrixOptions& options);

}  // namespace wasmquant
