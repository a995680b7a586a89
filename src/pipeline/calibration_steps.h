// What pre_quant_opt_config and algo_config ask for (Quark's names and defaults, spec quark 1.5), as steps for one
// transformer block after the other.
#pragma once
#include <cstdint>
#include <string>

#include "algorithms/gptq.h"
#include "algorithms/smooth_quant.h"
#include "config/spec.h"
#include "core/list.h"
#include "core/result.h"
#include "model/architecture.h"
#include "model/linear_input.h"

namespace wasmquant {

/// In the order in which they can follow each other.
enum class CalibrationMethod : uint8_t { smooth_quant, awq, gptq };

struct CalibrationStep {
  CalibrationMethod method = CalibrationMethod::smooth_quant;
  std::string where;  // JSON pointer of its config
  SmoothQuantOptions smooth_quant;
  GptqOptions gptq;
  bool true_sequential = true;  // gptq: inputs are seen again after each group of layers
  uint32_t inputs = 0b1111;     // smooth_quant, awq: a bit for each LinearInput that is scaled
  uint32_t layers = 0b1111111;  // gptq: a bit for each of the linear slots
  bool names_inputs = false;    // the config says which, so what cannot be scaled is an error
};

/// Names of the algorithms that need calibration, as the config spells them, in order; the others do nothing.
List<std::string> calibrated_algorithms(const Config& config);

/// Errors, `where` a JSON pointer: config-invalid (a step cannot follow the one before it; a layer is not one of the
/// block's, or does not read what it is said to read).
Result<List<CalibrationStep>> calibration_steps(const Config& config, const model::Architecture& architecture);

/// Name below "layers.N." of the layer that makes an input, so that its outputs can be scaled.
const char* maker_of(model::LinearInput input, const model::Architecture& architecture) noexcept;

}  // namespace wasmquant
