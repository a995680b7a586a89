// Activation observers of a plan. Contract: BoundActivationObserver of web/lib/engine/forward_module.ts.
#pragma once
#include "handles/forward_pass.h"
#include "pipeline/calibration/layer_inputs.h"

namespace wasmquant::bindings {

class BoundActivationObserver : Counted {
 public:
  /// Errors: those of ActivationCalibration::create.
  static Made<BoundActivationObserver> make(const std::string& requests);
  ~BoundActivationObserver() { leave(); }

  /// An observer that needs a second pass over the data, or "".
  std::string second_pass() { return observers().needs_two_passes(); }
  /// Whether the batch is needed. Errors: those of read_shape and ActivationCalibration::begin.
  Result<bool> begin(const std::string& layer, const std::string& role, const std::string& shape);
  /// Errors: those of read_values and ActivationCalibration::update.
  Status update(Address values, const std::string& dtype, double count);
  /// Observes the linear-layer inputs of `pass` from now on.
  void watch(const BoundForwardPass& pass);
  /// Whether another pass over the data is needed. Errors: those of ActivationCalibration::next_pass.
  Result<bool> next_pass();
  /// Errors: those of ActivationCalibration::finish.
  Result<json::Value> finish() { return observers().finish(); }

 private:
  explicit BoundActivationObserver(ActivationCalibration calibration) : inputs_(std::move(calibration)) {}

  ActivationCalibration& observers() noexcept { return inputs_.calibration(); }
  void leave() noexcept {
    if (watched_) watched_->set_sink(nullptr);
  }

  LayerInputs inputs_;
  std::shared_ptr<ForwardSession> watched_;
  bool is_second_ = false;
};

}  // namespace wasmquant::bindings
