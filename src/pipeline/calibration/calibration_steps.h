// What pre_quant_opt_config and algo_config ask for (Quark's names and defaults, spec quark 1.5), as steps for one
// transformer block after the other.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "algorithms/rounding/gptq.h"
#include "algorithms/scaling/auto_smooth_quant.h"
#include "algorithms/scaling/equalization.h"
#include "algorithms/scaling/smooth_quant.h"
#include "config/spec/algorithm_table.h"
#include "config/spec/spec.h"
#include "core/list.h"
#include "core/result.h"
#include "model/architecture.h"
#include "model/linear_input.h"
#include "pipeline/calibration/model_rotation.h"

namespace wasmquant {

constexpr bool rounds_columns(CalibrationMethod method) noexcept {
  return info_of(method).kind == AlgorithmKind::rounds;
}
/// Whether the method also sees what the model without quantization computes.
constexpr bool needs_reference(CalibrationMethod method) noexcept {
  return info_of(method).sees == AlgorithmSees::reference;
}

struct CalibrationStep {
  CalibrationMethod method = CalibrationMethod::smooth_quant;
  std::string name;   // of its config, as it spells it
  std::string where;  // JSON pointer of its config
  ModelRotation rotation;
  EqualizationOptions equalization;
  SmoothQuantOptions smooth_quant;
  ScaleLoss scale_loss = ScaleLoss::mse;       // auto_smooth_quant
  std::optional<QuantizationSpec> input_spec;  // the same: what the global config makes of inputs
  GptqOptions gptq;                            // gptq, gptaq, qronos; gpfq: desc_act alone
  double alpha = 0;                            // gptaq: share of the drift; qronos: damping by the largest eigenvalue
  bool true_sequential = true;  // of what rounds columns: inputs are seen again after each group of layers
  uint32_t inputs = 0b1111;     // of what scales: a bit for each LinearInput that is scaled
  uint32_t layers = 0b1111111;  // of what rounds columns: a bit for each of the linear slots
  bool names_inputs = false;    // the config says which, so what cannot be scaled is an error
};

/// What a run has to know of an algorithm before it begins.
struct CalibratedAlgorithm {
  std::string name;             // as the config spells it
  bool needs_inputs = true;     // changes weights by what they are multiplied with
  bool changes_inputs = false;  // of linear layers, by another function of the same value
  bool rotates_stream = false;  // embedding, final norm and head change too
  bool needs_reference = false;
  bool is_implied = false;  // AskedAlgorithm::is_implied
};

/// The algorithms that go through a model block by block, in order; the others do nothing.
List<CalibratedAlgorithm> calibrated_algorithms(const Config& config);

/// Errors, `where` a JSON pointer: config-invalid (a step cannot follow the one before it; a layer is not one of the
/// block's, or does not read what it is said to read; no layer has a bias to correct), not-implemented (what needs a
/// runtime that does it, too: rotations r3 and r4, inputs multiplied before a layer), those of ModelRotation.
Result<List<CalibrationStep>> calibration_steps(const Config& config, const model::Architecture& architecture);

/// Name below "layers.N." of the layer that makes an input, so that its outputs can be scaled.
const char* producer_of(model::LinearInput input, const model::Architecture& architecture) noexcept;

}  // namespace wasmquant
