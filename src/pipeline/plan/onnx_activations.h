// What goes into the layers of an ONNX model and comes out of them, as a plan has it: scales of static inputs and
// outputs, and importance of input channels. Asked of calibration, or put in place where it has found them.
#pragma once
#include "config/resolve.h"
#include "onnx_graph/onnx_rewrite.h"
#include "pipeline/plan/plan.h"

namespace wasmquant {

class OnnxActivations {
 public:
  OnnxActivations(const onnx::Model& model, const PlanOptions& options) : model_(model), options_(options) {}

  /// Whether nodes multiply or convolve with the weight: others have no inputs that are quantized.
  bool takes_static(const conversion::OnnxModelWeight& weight) const noexcept;
  /// Of a weight whose task is set, into `requests` and the task. Errors: format-unsupported for static specs that
  /// ONNX has no operators for, not-implemented for weighted observers of other than linear layers.
  Status add(PlannedTensor& planned, const conversion::OnnxModelWeight& weight, const LayerConfig& layer,
             List<ActivationRequest>& requests);
  /// The scales of its layer.
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
