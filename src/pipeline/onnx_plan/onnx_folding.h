// Folding of ONNX batch norms into the layers before them. The skeleton has no values, so a plan is made twice: first
// without norm values, with final sizes and the ranges to read (Plan::constants), then with them, ready to run.
#pragma once
#include "onnx_graph/onnx_norms.h"
#include "pipeline/plan/plan.h"

namespace wasmquant {

class OnnxFolding {
 public:
  /// `asked`: whether the config requests folding. `model` must outlive this object.
  OnnxFolding(const onnx::Model& model, const List<conversion::OnnxModelWeight>& weights, bool asked);
  OnnxFolding(const OnnxFolding&) = delete;

  const onnx::Model& model() const noexcept { return *model_; }
  const List<conversion::OnnxNorm>& norms() const noexcept { return norms_; }

  /// `constants`: bytes of the ranges, concatenated; empty: not read yet, the plan then lists them. Errors:
  /// value-not-finite (a norm), argument-invalid (wrong bytes).
  Status read(std::span<const uint8_t> constants, Plan& plan);
  /// Sets task and reason of a model tensor.
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
  List<std::vector<float>> factors_;  // per channel, by norm; empty: not known yet
  List<bool> needless_;
};

}  // namespace wasmquant
