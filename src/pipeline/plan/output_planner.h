// What planning has in common for every output format: the order of its steps, the facts that are copied from a
// tensor's source, failures and the places they are about, limits of memory, and totals. The planner of a format says
// what becomes of each tensor, and where the files have it.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "pipeline/calibration/algorithm_list.h"
#include "pipeline/plan/plan.h"

namespace wasmquant {

/// How many tensors or layers something is true of, and the first of them: a remark on many names one.
struct Tally {
  uint64_t count = 0;
  std::string first;

  void add(std::string_view name) {
    if (count++ == 0) first = name;
  }
};

class OutputPlanner {
 public:
  virtual ~OutputPlanner() = default;
  /// The plan, or the first failure; the diagnostics then hold all of them.
  Result<Plan> run();

 protected:
  OutputPlanner(std::string_view format, const ModelIndex& model, const Config& config, const PlanOptions& options,
                List<Diagnostic>& diagnostics);

  // ---- what each format answers, in the order in which it is asked

  /// Whatever choices depend on. An error ends the planning.
  virtual Status prepare() { return {}; }
  /// Each tensor of the output: begin(), what becomes of it, finish().
  virtual void add_tensors() = 0;
  /// Remarks on what was chosen, and failures of the model as a whole.
  virtual void report() = 0;
  /// Plan::files, and the components' places in them.
  virtual Status place_files() = 0;
  /// Whether a plan that leaves most of the model as it is gets a warning.
  virtual bool expects_coverage() const { return true; }

  // ---- what they share

  /// A row of the plan with what its source says. The reference is good until the next call.
  PlannedTensor& begin(uint32_t index, const ModelTensor& tensor);
  /// The tensor's bytes go over as they are.
  static void keep_bytes(PlannedTensor& planned);
  /// Tiles and totals of a tensor whose layout is chosen; or its failure, which may also be that its tiles are too
  /// large (memory-budget).
  void finish(PlannedTensor& planned, Status chosen);

  /// The spec with the largest of 128, 64, 32 below the asked group size that divides the axis, else with one scale per
  /// channel. The tensor's reason and the diagnostics say so.
  QuantizationSpec fall_back(const QuantizationSpec& spec, uint64_t axis_length, PlannedTensor& planned);
  /// Whether groups that do not divide an axis are made to fit: presets are for many models.
  bool has_fallback() const noexcept { return config_.indivisible_groups == IndivisibleGroups::fallback; }

  /// An error of the plan. Its place is the tensor, where it names none; its message ends with the key of the config
  /// that asks for it, where there is one.
  void fail(const PlannedTensor& planned, Error error);
  void fail(Error error);
  /// A tensor that the format cannot hold, which stays as it is: an error only where nothing else is quantized.
  void leave(const PlannedTensor& planned, Error error);
  uint64_t failures() const noexcept { return failures_; }
  void warn(std::string_view code, std::string where, std::string message, std::string_view hint = "");
  void note(std::string_view code, std::string where, std::string message, std::string_view hint = "");
  /// The warning about `requantized_`, where there is something to say.
  void report_requantized();

  const ModelIndex& model_;
  const Config& config_;
  const PlanOptions& options_;
  List<Diagnostic>& diagnostics_;
  const List<AskedAlgorithm> asked_;
  Plan plan_;
  Tally requantized_;  // tensors whose source was quantized before
  Tally left_;         // tensors that leave() was called for

 private:
  Error of_model(Error error) const;
  void count(PlannedTensor& planned);
  void warn_of_low_coverage();

  uint64_t failures_ = 0;
  Error first_failure_;
  std::optional<Error> first_left_;
};

}  // namespace wasmquant
