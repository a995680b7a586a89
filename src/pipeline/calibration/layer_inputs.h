// Feeds linear-layer inputs of the built-in forward pass to ActivationCalibration. The pass does not expose outputs.
#pragma once
#include "model/linear_input.h"
#include "pipeline/calibration/activation_calibration.h"

namespace wasmquant {

/// A sink that names each input by layer and passes it on; owns the calibration.
class LayerInputs final : public model::InputSink {
 public:
  explicit LayerInputs(ActivationCalibration calibration) noexcept : calibration_(std::move(calibration)) {}

  ActivationCalibration& calibration() noexcept { return calibration_; }
  Status accept(uint32_t layer, model::LinearInput input, std::span<const float> x, size_t columns) override;

 private:
  Status show(std::string_view ending, std::span<const float> x, size_t columns);

  ActivationCalibration calibration_;
};

}  // namespace wasmquant
