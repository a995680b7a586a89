// BlockCalibration: column-by-column rounding of weights, and bias correction.
#include <optional>
#include <utility>

#include "algorithms/rounding/gptaq.h"
#include "algorithms/rounding/qronos.h"
#include "algorithms/scaling/bias_correction.h"
#include "core/message.h"
#include "model/linear_layers.h"
#include "pipeline/calibration/block_calibration.h"

namespace wasmquant {
namespace {

using model::LinearLayer;
using model::Slot;

// damp_percent that adds alpha times the largest eigenvalue; columns without input count as 1 in the diagonal's mean.
double relative_damping(std::span<const float> hessian, size_t columns, double alpha) {
  double trace = 0;
  for (size_t j = 0; j < columns; ++j) trace += hessian[j * columns + j] == 0 ? 1.0f : hessian[j * columns + j];
  return alpha * largest_eigenvalue(hessian, columns) * static_cast<double>(columns) / trace;
}

}  // namespace

Status BlockCalibration::round(const Part& part) {
  const CalibrationStep& step = *part.step;
  SeenInput& input = seen(part.input);
  const size_t columns = input.mean.size();
  const std::unique_ptr<GpfqInputs> pair = std::move(pairs_[static_cast<size_t>(part.input)]);
  ErrorFeedback feedback;
  std::vector<float> drift;
  if (step.method != CalibrationMethod::gpfq) {
    double damping = step.gptq.damp_percent;
    if (pair) {
      const double factor = 2 / static_cast<double>(input.tokens);
      drift = input_drift(*pair, factor);
      input.hessian.assign(pair->square().begin(), pair->square().end());
      for (float& value : input.hessian) value = static_cast<float>(value * factor);
    }
    if (step.method == CalibrationMethod::qronos) damping = relative_damping(input.hessian, columns, step.alpha);
    auto found = error_feedback_of(std::move(input.hessian), columns, damping, step.gptq.desc_act);
    input.hessian.clear();
    if (!found) return at(name(model::consumers_of(part.input).front().weight), std::move(found.error()));
    feedback = std::move(*found);
    if (step.method == CalibrationMethod::gptaq) add_drift(feedback, drift, step.alpha);
  }
  for (const LinearLayer& layer : model::consumers_of(part.input)) {
    if (!is_rounded(step, layer.weight)) continue;
    if (Status status = round_layer(layer.weight, step, feedback, drift, pair.get()); !status)
      return at(name(layer.weight), std::move(status.error()));
  }
  return {};
}

Status BlockCalibration::round_layer(Slot slot, const CalibrationStep& step, const ErrorFeedback& feedback,
                                     std::span<const float> drift, const GpfqInputs* pair) {
  Tensor& target = tensor(slot);
  const WeightLayout& layout = target.task->layout;
  const QuantizationSpec& spec = layout.spec;
  if (info_of(spec.dtype).is_block() || !layout.stages.empty())
    return error_at(ErrorCode::spec_invalid, target.task->name,
                    "{} needs one scale per row or group; {} has none, so exclude the layer or take another dtype",
                    step.name, info_of(spec.dtype).name);
  const bool is_gpfq = step.method == CalibrationMethod::gpfq;
  const ValueRange joined = joined_range(slot);
  std::vector<float>& weight = (*block_)[slot];
  std::vector<float> original = weight;
  std::vector<float>& ranged = target.clipped.empty() ? weight : target.clipped;
  for (size_t row = 0; row < weight.size() && !is_gpfq; row += feedback.columns())
    for (const uint32_t j : feedback.dead) weight[row + j] = ranged[row + j] = 0;
  WeightScales scales;
  if (is_gpfq || step.gptq.static_groups || !target.clipped.empty()) {
    TRY(observed, observed_scales(*target.task, ranged, joined));
    scales = std::move(observed);
  }
  if (step.method == CalibrationMethod::qronos) TRY_VOID(correct_for_drift(feedback, drift, weight));
  std::vector<uint32_t> codes(weight.size() * code_bytes_of(spec) / sizeof(uint32_t) + 1);
  const std::span<uint8_t> bytes{reinterpret_cast<uint8_t*>(codes.data()), weight.size() * code_bytes_of(spec)};
  if (is_gpfq) {
    TRY_VOID(gpfq(*pair, spec, scales.qparams, {step.gptq.desc_act}, layout.rows, weight, bytes));
  } else {
    TRY(found, gptq(feedback, spec, step.gptq, layout.rows, weight, bytes, scales.qparams));
    scales.qparams = std::move(found);
  }
  target.clipped.clear();
  TRY(stored, store_changed(*target.task, weight, &scales, original));
  weight = std::move(stored.values);
  target.stored.emplace(std::move(stored));
  return {};
}

void BlockCalibration::correct_bias(Slot slot) noexcept {
  for (const LinearLayer& layer : model::linear_layers()) {
    std::vector<float>& bias = (*block_)[slot];
    const auto input = static_cast<size_t>(layer.reads);
    if (layer.bias != slot || !is_quantized(layer.weight) || bias.empty()) continue;
    wasmquant::correct_bias(reference_[layer.weight], (*block_)[layer.weight], means_[input], tokens_[input], bias);
  }
}

}  // namespace wasmquant
