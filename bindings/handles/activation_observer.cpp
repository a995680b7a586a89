#include "handles/activation_observer.h"

#include "pipeline/forward/forward_plan.h"
#include "tensors/tensor_input.h"

namespace wasmquant::bindings {

Made<BoundActivationObserver> BoundActivationObserver::make(const std::string& requests) {
  TRY(calibration, ActivationCalibration::create(requests));
  return std::unique_ptr<BoundActivationObserver>(new BoundActivationObserver(std::move(calibration)));
}

Result<bool> BoundActivationObserver::begin(const std::string& layer, const std::string& role,
                                            const std::string& shape_text) {
  TRY(shape, read_shape(shape_text));
  TRY_VOID(observers().begin(layer, activation_role_named(role), shape));
  return observers().is_wanted();
}

Status BoundActivationObserver::update(Address values, const std::string& dtype, double count) {
  TRY(x, read_values(values, dtype, static_cast<uint64_t>(count)));
  return observers().update(x);
}

void BoundActivationObserver::watch(const BoundForwardPass& pass) {
  leave();
  watched_ = pass.session();
  inputs_.set_architecture(watched_->pass().architecture(), &gguf_layer);
  watched_->set_sink(&inputs_);
}

Result<bool> BoundActivationObserver::next_pass() {
  if (is_second_ || observers().needs_two_passes().empty()) return false;
  is_second_ = true;
  TRY_VOID(observers().next_pass());
  return true;
}

}  // namespace wasmquant::bindings
