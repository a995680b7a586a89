// Planning steps shared by all output formats: their order, source facts, failures and their places, memory limits,
// totals. A format's planner decides what becomes of each tensor and where files store it.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "pipeline/calibration/algorithm_list.h"
#include "pipeline/plan/plan.h"

namespace wasmquant {

/// A count and the first name, for remarks on many tensors or layers.
struct CountWithExample {
  uint64_t count = 0;
  std::string first;

  void add(std::string_view name) {
    if (count++ == 0) first = name;
  }
};

/// The JSON pointer of the key that gives the key-value cache a dtype; "" if none does.
std::string cache_request_of(const Config& config);

class OutputPlanner {
 public:
  virtual ~OutputPlanner() = default;
  /// The plan, or the first failure; the diagnostics contain all failures.
  Result<Plan> run();

 protected:
  OutputPlanner(std::string_view format, const ModelIndex& model, const Config& config, const PlanOptions& options,
                List<Diagnostic>& diagnostics);

  // ---- each format implements, in call order

  /// Computes what choices depend on. An error ends the planning.
  virtual Status prepare() { return {}; }
  /// For each output tensor: begin(), the choice, finish().
  virtual void add_tensors() = 0;
  /// Adds remarks on the choices, and failures of the model as a whole.
  virtual void report() = 0;
  /// Sets Plan::files and the components' places in them.
  virtual Status place_files() = 0;
  /// Whether the plan does nothing that was asked for: the error of a run, which a plan names first.
  virtual bool does_nothing() const { return plan_.quantized_count == 0; }
  /// Whether files have a place for scales of a calibrated key-value cache, or the planner refuses one.
  virtual bool plans_cache() const { return false; }
  /// Whether low coverage gets a warning.
  virtual bool expects_coverage() const { return plan_.quantized_count != 0; }
  /// What quantizes more of the model; empty: nothing is known.
  virtual std::string_view coverage_hint() const { return {}; }

  // ---- shared

  /// Adds a row with the source's facts. The reference is valid until the next call.
  PlannedTensor& begin(uint32_t index, const ModelTensor& tensor);
  /// Copies the tensor's bytes.
  static void copies_source(PlannedTensor& planned);
  /// Sets tiles and totals of a tensor with a layout, or records its failure (format-unsupported: tiles are too large).
  void finish(PlannedTensor& planned, Status chosen);

  /// Counts bytes that a finished tensor needs in addition to its outputs.
  void add_bytes(PlannedTensor& planned, uint64_t bytes);

  /// The spec with the largest of 128, 64, 32 below the requested group size, and at most `largest`, that divides the
  /// axis, else per channel. Recorded in the tensor's reason and the diagnostics.
  QuantizationSpec fall_back(const QuantizationSpec& spec, uint64_t axis_length, PlannedTensor& planned,
                             int64_t largest);
  /// Whether group sizes are adapted to axes they do not divide, as in presets.
  bool has_fallback() const noexcept { return config_.indivisible_groups == IndivisibleGroups::fallback; }

  /// Records an error. Its place defaults to the tensor; the message ends with the config key responsible, if any.
  void fail(const PlannedTensor& planned, Error error);
  void fail(Error error);
  /// Leaves a tensor that the format does not support; an error only if nothing else is quantized.
  void leave(const PlannedTensor& planned, Error error);
  uint64_t failures() const noexcept { return failures_; }
  void warn(DiagnosticCode code, std::string where, std::string message, std::string_view hint = "");
  void note(DiagnosticCode code, std::string where, std::string message, std::string_view hint = "");
  /// Warns about `requantized_` if there are any.
  void report_requantized();

  const ModelIndex& model_;
  const Config& config_;
  const PlanOptions& options_;
  List<Diagnostic>& diagnostics_;
  const List<RequestedAlgorithm> requested_;
  Plan plan_;
  CountWithExample requantized_;  // tensors with an already quantized source
  CountWithExample left_;         // tensors passed to leave()

 private:
  Error of_model(Error error) const;
  void count(PlannedTensor& planned);
  void put_first(Diagnostic diagnostic);

  uint64_t failures_ = 0;
  uint64_t cast_count_ = 0;  // of the quantized tensors
  Error first_failure_;
  std::optional<Error> first_left_;
  CountWithExample doubles_;  // tensors in float64 that are read
};

}  // namespace wasmquant
