// Batch norms of an ONNX model that a plan folds into the layers before them: which, what has to be read for that, and
// what then becomes of weights. Values of norms are not in the skeleton, so a plan is made twice: without them its
// sizes are right already, and it says where they lie (Plan::constants); with them it can be run.
#pragma once
#include "onnx_graph/onnx_norms.h"
#include "pipeline/plan/plan.h"

namespace wasmquant {

class OnnxFolding {
 public:
  /// `asked`: whether the config asks for it. `model` outlives it.
  OnnxFolding(const onnx::Model& model, const List<conversion::OnnxModelWeight>& weights, bool asked);
  OnnxFolding(const OnnxFolding&) = delete;

  /// Without the norms.
  const onnx::Model& model() const noexcept { return *model_; }
  const List<conversion::OnnxNorm>& norms() const noexcept { return norms_; }

  /// `constants`: what the ranges hold, one after another; empty: not read yet, and then the plan says what is to be
  /// read. Errors: value-not-finite (a norm), argument-invalid (bytes of something else).
  Status read(std::span<const uint8_t> constants, Plan& plan);
  /// Of what becomes of a tensor of the model, into its task and reason.
  void apply(uint32_t tensor, PlannedTensor& planned) const;
  /// Whether only folded norms use the tensor.
  bool is_needless(uint32_t tensor) const noexcept { return !needless_.empty() && needless_[tensor]; }
  const conversion::OnnxNorm* norm_of(uint32_t weight) const noexcept;

 private:
  Status fold(conversion::OnnxNorm& norm, std::span<const uint8_t>& constants);

  const onnx::Model& original_;
  onnx::Model folded_;
  const onnx::Model* model_;
  List<conversion::OnnxNorm> norms_;
  List<std::vector<float>> factors_;  // of channels, by norm; empty: not known yet
  List<bool> needless_;
};

}  // namespace wasmquant
