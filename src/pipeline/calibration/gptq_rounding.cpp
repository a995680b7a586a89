// BlockCalibration: column-by-column rounding of weights, and bias correction.
#include <cmath>
#include <optional>
#include <utility>

#include "algorithms/rounding/gptaq.h"
#include "algorithms/rounding/qronos.h"
#include "algorithms/scaling/bias_correction.h"
#include "core/message.h"
#include "kernels/matmul.h"
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

// w d of w [rows, n] and d [n, n]; empty if d is.
std::vector<float> product_with(std::span<const float> w, std::span<const float> d) {
  if (d.empty()) return {};
  const auto n = static_cast<size_t>(std::sqrt(static_cast<double>(d.size())) + 0.5);
  const size_t rows = w.size() / n;
  std::vector<float> out(w.size()), workspace(kernels::matmul_workspace(rows, n, n));
  kernels::matmul({w.data(), n, 1}, {d.data(), 1, n}, n, rows, n, kernels::Update::set, kernels::Region::all,
                  out.data(), n, workspace.data());
  return out;
}

// What `choose: "best"` tries: the step as it is given; less and more damping; and scales of each group when it is
// reached, in the layer's order.
List<GptqOptions> variants_of(const CalibrationStep& step) {
  List<GptqOptions> variants;
  variants.push_back(step.gptq);
  if (!step.chooses_best) return variants;
  constexpr double kDampings[] = {0.1, 10};
  for (const double share : kDampings) variants.emplace_back(step.gptq).damp_percent *= share;
  // Where the groups are those of the order of rounding, the file says so.
  if (!step.gptq.static_groups) return variants;
  GptqOptions& late = variants.emplace_back(step.gptq);
  late.static_groups = late.desc_act = false;
  return variants;
}

}  // namespace

Status BlockCalibration::round(const Part& part) {
  const CalibrationStep& step = *part.step;
  SeenInput& input = seen(part.input);
  const size_t columns = input.mean.size();
  const std::unique_ptr<GpfqInputs> pair = std::move(pairs_[static_cast<size_t>(part.input)]);
  ErrorFeedback feedback;
  std::vector<float> drift;
  if (pair) {
    const double factor = 2 / static_cast<double>(input.tokens);
    drift = input_drift(*pair, factor);
    input.hessian.assign(pair->square().begin(), pair->square().end());
    for (float& value : input.hessian) value = static_cast<float>(value * factor);
  }
  const ExpectedError expected(input.hessian, columns, input.tokens, applied_scales(part.input));
  std::vector<float> squares(columns);
  for (size_t j = 0; j < columns; ++j) squares[j] = input.hessian[j * columns + j];
  const List<GptqOptions> variants = variants_of(step);
  for (const GptqOptions& variant : variants) {
    const bool is_last = &variant == &variants.back();
    if (step.method != CalibrationMethod::gpfq) {
      double damping = variant.damp_percent;
      if (step.method == CalibrationMethod::qronos) damping = relative_damping(input.hessian, columns, step.alpha);
      auto found = error_feedback_of(is_last ? std::move(input.hessian) : std::vector<float>(input.hessian), columns,
                                     damping, variant.desc_act);
      if (!found) return at(name(model::consumers_of(part.input).front().weight), std::move(found.error()));
      feedback = std::move(*found);
      if (step.method == CalibrationMethod::gptaq) add_drift(feedback, drift, step.alpha);
    }
    feedback.squares = squares;
    for (const LinearLayer& layer : model::consumers_of(part.input)) {
      if (!is_rounded(step, layer.weight)) continue;
      Status status = round_layer(layer.weight, {step, variant, feedback, expected, drift, pair.get()});
      if (status && is_last) status = settle_rounded(layer.weight, step, expected, drift);
      if (!status) return at(name(layer.weight), std::move(status.error()));
    }
  }
  input.hessian.clear();
  return {};
}

Status BlockCalibration::round_layer(Slot slot, const Rounding& by) {
  const auto& [step, options, feedback, expected, drift, pair] = by;
  Tensor& target = tensor(slot);
  const WeightLayout& layout = target.task->layout;
  const QuantizationSpec& spec = layout.spec;
  if (info_of(spec.dtype).is_block() || !layout.stages.empty())
    return error_at(ErrorCode::spec_invalid, target.task->name,
                    "{} needs one scale per row or group; {} has none, so exclude the layer or use another dtype",
                    step.name, info_of(spec.dtype).name);
  const bool is_gpfq = step.method == CalibrationMethod::gpfq;
  const ValueRange joined = joined_range(slot);
  const std::vector<float>& original = (*block_)[slot];
  std::vector<float> weight = original, clipped = target.clipped;
  std::vector<float>& ranged = clipped.empty() ? weight : clipped;
  for (size_t row = 0; row < weight.size() && !is_gpfq; row += feedback.columns())
    for (const uint32_t j : feedback.dead) weight[row + j] = ranged[row + j] = 0;
  const bool was_clipped = !clipped.empty();
  TRY(scales, observed_scales(*target.task, ranged, joined, feedback.squares));
  if (!is_gpfq && !options.static_groups && !was_clipped) scales.qparams.clear();
  if (step.method == CalibrationMethod::qronos) TRY_VOID(correct_for_drift(feedback, drift, weight));
  std::vector<uint32_t> codes(weight.size() * code_bytes_of(spec) / sizeof(uint32_t) + 1);
  const std::span<uint8_t> bytes{reinterpret_cast<uint8_t*>(codes.data()), weight.size() * code_bytes_of(spec)};
  if (is_gpfq) {
    TRY_VOID(gpfq(*pair, spec, scales.qparams, {options.desc_act}, layout.rows, weight, bytes));
  } else {
    TRY(found, gptq(feedback, spec, options, layout.rows, weight, bytes, scales.qparams, scales.second_scale));
    scales.qparams = std::move(found);
  }
  const bool is_static = is_gpfq || options.static_groups || was_clipped;
  const std::vector<uint32_t> groups =
      is_static || spec.qscheme != QScheme::per_group
          ? std::vector<uint32_t>()
          : group_index(feedback.order, static_cast<uint64_t>(layout.granularity.block));
  TRY(stored, groups.empty() ? store_changed(*target.task, weight, &scales, original)
                             : store_grouped(*target.task, bytes, scales.qparams, groups, weight, original));
  if (!step.chooses_best) {
    target.stored.emplace(std::move(stored));
    return {};
  }
  std::vector<float> change = stored.values;
  for (size_t i = 0; i < change.size(); ++i) change[i] -= original[i];
  const double error = Judge{expected, {}}.error_of(change);
  if (target.stored && target.least_error <= error) return {};
  target.least_error = error;
  target.stored.emplace(std::move(stored));
  return {};
}

Status BlockCalibration::settle_rounded(Slot slot, const CalibrationStep& step, const ExpectedError& expected,
                                        std::span<const float> drift) {
  Tensor& target = tensor(slot);
  std::vector<float>& weight = (*block_)[slot];
  const std::vector<float> pull = product_with(weight, drift);
  TRY_VOID(settle(slot, step, {expected, pull}, weight, *target.stored));
  target.clipped.clear();
  weight = std::move(target.stored->values);
  target.stored->values.clear();
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
