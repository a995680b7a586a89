#include "activation_functions.h"

#include "tensor_input.h"

namespace wasmquant::bindings {

std::string BoundActivationCalibration::second_pass() const {
  if (!calibration_) return fail(calibration_.error());
  return ok(calibration_->needs_two_passes());
}

std::string BoundActivationCalibration::begin(std::string layer, std::string role, std::string shape_text) {
  if (!calibration_) return fail(calibration_.error());
  const auto shape = read_shape(shape_text);
  if (!shape) return fail(shape.error());
  const ActivationRole which = role == name_of(ActivationRole::output) ? ActivationRole::output : ActivationRole::input;
  if (Status begun = calibration_->begin(layer, which, *shape); !begun) return fail(begun.error());
  return ok(calibration_->is_wanted());
}

std::string BoundActivationCalibration::update(Address values, std::string dtype, uint32_t count) {
  if (!calibration_) return fail(calibration_.error());
  const auto x = read_values(values, dtype, count);
  return x ? reply(calibration_->update(*x)) : fail(x.error());
}

std::string BoundActivationCalibration::finish() {
  if (!calibration_) return fail(calibration_.error());
  auto found = calibration_->finish();
  return found ? ok(std::move(*found)) : fail(found.error());
}

}  // namespace wasmquant::bindings
