// Calibration steps per transformer block, from pre_quant_opt_config and algo_config (Quark's names, spec quark 1.5).
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
#include "model/config/architecture.h"
#include "model/linear_input.h"
#include "model/linear_layers.h"
#include "pipeline/calibration/model_rotation.h"

namespace wasmquant {

constexpr bool rounds_columns(CalibrationMethod method) noexcept {
  return info_of(method).kind == AlgorithmKind::rounds;
}
/// Whether the method also needs the unquantized model's activations.
constexpr bool needs_reference(CalibrationMethod method) noexcept {
  return info_of(method).sees == AlgorithmSees::reference;
}

/// One algorithm with its options; those of other algorithms have defaults and are not read.
struct CalibrationStep {
  CalibrationMethod method = CalibrationMethod::smooth_quant;
  std::string name;               // as its config spells it
  std::string where;              // JSON pointer of its config
  bool is_preprocessing = false;  // of pre_quant_opt_config, whose steps come before all quantization
  ModelRotation rotation;
  EqualizationOptions equalization;
  SmoothQuantOptions smooth_quant;
  ScaleLoss scale_loss = ScaleLoss::mse;       // auto_smooth_quant
  std::optional<QuantizationSpec> input_spec;  // the global config's input spec, for auto_smooth_quant
  GptqOptions gptq;                            // gptq, gptaq, qronos; gpfq: desc_act only
  double alpha = 0;             // gptaq: share of the drift; qronos: damping relative to the largest eigenvalue
  bool true_sequential = true;  // rounding: capture inputs again after each group of layers
  uint32_t inputs = (1u << model::kBlockInputs) - 1;   // scaling: one bit per LinearInput
  uint32_t layers = (1u << model::kLinearLayers) - 1;  // rounding: one bit per linear slot
  bool names_inputs = false;      // the config lists the inputs, also v_proj of grouped-query attention
  bool nearest_if_worse = false;  // `on_worse`: undone where rounding to nearest is expected to be better
  bool chooses_best = false;      // gptq's `choose`: the best of some variants for each layer, by ExpectedError
  uint32_t refine = 0;            // gptq, qronos: turns of refinement.h after it
  bool duo_scaling = false;       // awq: candidates that also even out weights
  bool quantizes_inputs = false;  // the config quantizes inputs, which scaling is also for: weights do not judge it
};

/// What a run must know about an algorithm before it starts.
struct CalibratedAlgorithm {
  std::string name;             // as the config spells it
  bool needs_inputs = true;     // needs activations
  bool changes_inputs = false;  // replaces the inputs of linear layers by another function of the same value
  bool rotates_stream = false;  // also changes embedding, final norm and head
  bool needs_reference = false;
  bool holds_out = false;   // chooses by inputs held out
  bool is_implied = false;  // RequestedAlgorithm::is_implied
};

/// The algorithms that process a model block by block, in order.
List<CalibratedAlgorithm> calibrated_algorithms(const Config& config);

/// Errors, `where` a JSON pointer: config-invalid (wrong order; a layer that is not in the block or does not read the
/// named input; no bias to correct), not-implemented (runtime support needed: rotation r3, inputs scaled before a
/// layer), those of ModelRotation.
Result<List<CalibrationStep>> calibration_steps(const Config& config, const model::Architecture& architecture);

/// Name, below its layer, of the module that produces an input, if its outputs can be scaled; else "".
const std::string& producer_of(model::LinearInput input, const model::Architecture& architecture) noexcept;

}  // namespace wasmquant
