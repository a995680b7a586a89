// Feeds what the built-in forward pass shows to ActivationCalibration: the inputs of linear layers, the outputs of k_proj
// and v_proj, and the keys and values of attention.
#pragma once
#include "model/config/architecture.h"
#include "model/linear_input.h"
#include "pipeline/calibration/activation_calibration.h"

namespace wasmquant {

/// A sink that names each input by layer and passes it on; owns the calibration.
class LayerInputs final : public model::InputSink {
 public:
  explicit LayerInputs(ActivationCalibration calibration) noexcept : calibration_(std::move(calibration)) {}

  ActivationCalibration& calibration() noexcept { return calibration_; }
  /// Of the passes that follow; must outlive them. `renamed`: what a layer of that family is called where it has another name, and which
  /// expert of several it is there, or -1.
  using Renamed = std::pair<std::string, int64_t>(const std::string& family, std::string_view layer);
  void set_architecture(const model::Architecture& architecture, Renamed* renamed) noexcept {
    architecture_ = &architecture;
    renamed_ = renamed;
  }
  Status accept(uint32_t layer, model::LinearInput input, std::span<const float> x, size_t columns) override;
  Status accept_expert(uint32_t layer, uint32_t expert, model::LinearInput input, std::span<const float> x,
                       size_t columns) override;
  Status accept_cached(uint32_t layer, model::CachedValue value, std::span<const float> x, size_t columns) override;

 private:
  Status show(std::string_view ending, ActivationRole role, std::span<const float> x, size_t columns);
  Status show_all(const model::Architecture& part, uint32_t layer, model::LinearInput input, std::span<const float> x,
                  size_t columns);

  /// A module's name from the list of layers on.
  std::string module_of(uint32_t layer, const std::string& name) const;

  ActivationCalibration calibration_;
  const model::Architecture* architecture_ = nullptr;
  Renamed* renamed_ = nullptr;
};

}  // namespace wasmquant
