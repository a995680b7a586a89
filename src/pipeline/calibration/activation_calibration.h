// Calibration by activations: the observers of the plan's static inputs and outputs see the tensors that enter and
// leave layers. The results go into the next plan of the same run.
//   begin(layer, role, shape)  update(x) ...  for each batch, in any order of layers
//   next_pass(), then the same batches again, if passes() is 2
//   finish()
// Batches of a layer count in order of arrival; splits into batches and calls matter only to per-batch observers.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/activation_scales.h"
#include "core/json.h"
#include "core/list.h"
#include "core/result.h"
#include "observers/observer.h"

namespace wasmquant {

/// What a plan needs to know about the inputs or outputs of one layer: scales, importance, or both.
struct ActivationRequest {
  std::string layer;
  ActivationRole role = ActivationRole::input;
  uint64_t features = 0;                 // the last dimension; 0: unknown
  std::optional<QuantizationSpec> spec;  // static scales
  uint64_t scales = 0;                   // number of scales
  bool importance = false;               // mean squares of input channels
  bool may_be_unseen = false;            // of an expert, to which no token may be sent
};

/// Input of ActivationCalibration::create; "" if there are no requests.
std::string write_requests(const List<ActivationRequest>& requests);

/// The row of "found" (ActivationCalibration::finish) that answers the request, or null.
const json::Value& found_for(const ActivationRequest& request, const json::Value& found) noexcept;
/// The name in requests of one expert's share in a layer that has those of all.
std::string expert_layer(std::string_view layer, uint64_t expert);
/// Mean squares of input channels in a row of "found" (ActivationCalibration::finish); empty if not requested.
std::vector<float> importance_in(const json::Value& found);

/// Observes the requested inputs and outputs; owns its observers.
class ActivationCalibration {
 public:
  /// `requests`: from write_requests. Errors: json-invalid, spec-invalid.
  static Result<ActivationCalibration> create(std::string_view requests);

  /// The first observer that needs two passes, "PerTensorPercentileObserver of mlp.up_proj.input"; "" if there is none.
  std::string needs_two_passes() const;

  /// The layer requested in that role whose name is `ending` or ends with "." + `ending`; "" if there is none.
  std::string_view layer_ending_with(std::string_view ending, ActivationRole role) noexcept;
  /// Begins a batch; batches of layers without requests are only counted. Errors, `where` <layer>.<role>:
  /// shape-mismatch (no elements, wrong feature count), argument-invalid if an observer would keep too much.
  Status begin(std::string_view layer, ActivationRole role, const std::vector<uint64_t>& shape);
  /// The batch's next elements, in C order. Errors: value-not-finite; shape-mismatch if there are too many.
  Status update(std::span<const float> x);
  /// Whether a request needs the current batch.
  bool is_wanted() const noexcept { return current_ != nullptr; }

  /// Error: state-invalid.
  Status next_pass();
  /// {"found": [{layer, role, scale, zeroPoint, squares, count}], "unused": batches of layers without requests};
  /// squares: float32 sums over `count` vectors, one per feature. Errors: argument-invalid naming every layer without
  /// data; those of Observer::finish; format-unsupported if the data changes the dtype.
  Result<json::Value> finish();

 private:
  struct ObservedActivation {
    std::string layer;
    ActivationRole role = ActivationRole::input;
    uint64_t features = 0, scales = 0;   // as in ActivationRequest
    std::unique_ptr<Observer> observer;  // null: importance only
    List<double> squares;                // per feature
    bool may_be_unseen = false;
    uint64_t batches = 0;                        // in this pass
    uint64_t elements = 0, elements_before = 0;  // in this pass and in the first
    std::string where() const;
    bool observes(uint32_t pass) const noexcept { return observer && pass <= observer->passes(); }
  };

  Status check_complete() const;
  static Status finish_scales(const ObservedActivation& entry, json::Value& row);

  List<ObservedActivation> entries_;
  size_t latest_ = 0;  // found by layer_ending_with; what is asked for next is near
  bool is_twice_ = false;
  ObservedActivation* current_ = nullptr;
  uint64_t at_ = 0, count_ = 0;  // position and length of the batch
  uint64_t unused_ = 0;
  uint32_t pass_ = 1;
};

}  // namespace wasmquant
