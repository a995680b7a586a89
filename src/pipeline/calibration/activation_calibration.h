// Calibration by activations: the tensors that go into and come out of layers, as the caller has them, seen by the
// observers of the plan's static inputs and outputs. What was found goes into the next plan of the same run.
//
//   begin(layer, role, shape)  update(x) ...  for each batch, in any order of layers
//   next_pass(), then the same batches again, where passes() is 2
//   finish()
//
// A layer's batches count in the order in which they come. How data is split into batches and calls changes nothing,
// except with observers that are defined by batch.
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

/// What a plan asks of calibration.
struct ActivationRequest {
  std::string layer;
  ActivationRole role = ActivationRole::input;
  uint64_t features = 0;                 // the last dimension; 0: not known
  std::optional<QuantizationSpec> spec;  // static scales
  uint64_t scales = 0;                   // so many
  bool importance = false;               // mean squares of input channels
};

/// For ActivationCalibration::create; "" when there are none.
std::string write_requests(const List<ActivationRequest>& requests);

/// The row of "found" (ActivationCalibration::finish) that answers the request; null: none does.
const json::Value& found_for(const ActivationRequest& request, const json::Value& found) noexcept;
/// Mean squares of input channels, of a row of "found" (ActivationCalibration::finish); none were asked for: empty.
std::vector<float> importance_in(const json::Value& found);

class ActivationCalibration {
 public:
  /// `requests`: of write_requests. Errors: json-invalid, spec-invalid.
  static Result<ActivationCalibration> create(std::string_view requests);

  /// "PerTensorPercentileObserver of mlp.up_proj.input", the first that needs two passes; empty when one is enough.
  std::string needs_two_passes() const;

  /// The layer, of those whose inputs are asked for, whose name is `ending` or ends with "." and that; or "".
  std::string_view layer_ending_with(std::string_view ending) const noexcept;
  /// A batch follows; of layers that ask for nothing it is counted and passed over. Errors, `where` <layer>.<role>:
  /// shape-mismatch (no elements, other features than the layer has), memory-budget when an observer would keep too
  /// much.
  Status begin(std::string_view layer, ActivationRole role, const std::vector<uint64_t>& shape);
  /// Its next elements, in C order. Errors: value-not-finite; shape-mismatch for more than the shape has.
  Status update(std::span<const float> x);
  /// Whether the batch that was begun is of use.
  bool is_wanted() const noexcept { return current_ != nullptr; }

  /// Error: state-invalid.
  Status next_pass();
  /// {"found": [{layer, role, scale, zeroPoint, squares, count}], "unused": batches of layers that ask for none};
  /// squares: sums over `count` vectors, one a feature, in float32. Errors: argument-invalid naming every layer that
  /// saw no data; those of Observer::finish; format-unsupported when the data makes the dtype another one.
  Result<json::Value> finish();

 private:
  struct Entry {
    std::string layer;
    ActivationRole role = ActivationRole::input;
    uint64_t features = 0, scales = 0;           // as in ActivationRequest
    std::unique_ptr<Observer> observer;          // null: importance alone
    List<double> squares;                        // sums by feature
    uint64_t batches = 0;                        // of this pass
    uint64_t elements = 0, elements_before = 0;  // of this pass, and the first
    std::string where() const;
    /// Whether the observer sees the data of that pass.
    bool observes(uint32_t pass) const noexcept { return observer && pass <= observer->passes(); }
  };

  Status check_complete() const;
  static Status finish_scales(const Entry& entry, json::Value& row);

  List<Entry> entries_;
  bool is_twice_ = false;
  Entry* current_ = nullptr;
  uint64_t at_ = 0, count_ = 0;  // of the batch
  uint64_t unused_ = 0;
  uint32_t pass_ = 1;
};

}  // namespace wasmquant
