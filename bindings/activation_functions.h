// Calibration by activations that JavaScript brings. Contracts: web/lib/engine/module.ts.
#pragma once
#include <string>

#include "marshal.h"
#include "pipeline/calibration/activation_calibration.h"

namespace wasmquant::bindings {

class BoundActivationCalibration : Counted {
 public:
  explicit BoundActivationCalibration(std::string requests) : calibration_(ActivationCalibration::create(requests)) {}
  std::string second_pass() const;
  std::string begin(std::string layer, std::string role, std::string shape);
  std::string update(Address values, std::string dtype, uint32_t count);
  std::string next_pass() { return calibration_ ? reply(calibration_->next_pass()) : fail(calibration_.error()); }
  std::string finish();

 private:
  Result<ActivationCalibration> calibration_;
};

}  // namespace wasmquant::bindings
