// Scales of static inputs and outputs of ONNX layers, and importance: requested from calibration, or set if found.
#pragma once
#include "config/resolve/resolve.h"
#include "onnx_graph/onnx_rewrite.h"
#include "pipeline/plan/plan.h"

namespace wasmquant {

class OnnxActivations {
 public:
  OnnxActivations(const onnx::Model& model, const PlanOptions& options) : model_(model), options_(options) {}

  /// Whether nodes multiply or convolve with the weight; other nodes have no quantized inputs.
  bool takes_static(const conversion::OnnxModelWeight& weight) const noexcept;
  /// Fills `requests` and the task of a weight. Errors: format-unsupported for static specs without ONNX operators,
  /// not-implemented for weighted observers on layers that are not linear.
  Status add(PlannedTensor& planned, const conversion::OnnxModelWeight& weight, const LayerConfig& layer,
             List<ActivationRequest>& requests);
  void apply(conversion::OnnxChoice& choice) const;

 private:
  struct Known {
    uint32_t tensor;
    ActivationRole role;
    conversion::StaticScale scale;
  };

  const onnx::Model& model_;
  const PlanOptions& options_;
  List<Known> known_;
};

}  // namespace wasmquant
