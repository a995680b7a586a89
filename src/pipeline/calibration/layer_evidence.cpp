// BlockCalibration: whether a step is better than rounding to nearest, by the expected change of the layer's output.
#include <optional>
#include <utility>

#include "model/linear_layers.h"
#include "pipeline/calibration/block_calibration.h"

namespace wasmquant {

using model::LinearInput;
using model::LinearLayer;
using model::Slot;

namespace {

std::vector<float> difference_of(std::span<const float> values, std::span<const float> weight) {
  std::vector<float> change(weight.size());
  for (size_t i = 0; i < change.size(); ++i) change[i] = values[i] - weight[i];
  return change;
}

}  // namespace

Result<std::vector<float>> BlockCalibration::nearest_change(Slot slot, std::span<const float> weight,
                                                            std::span<const float> scales) {
  std::vector<float> scaled(weight.begin(), weight.end());
  for (size_t i = 0; i < scaled.size() && !scales.empty(); ++i) scaled[i] *= scales[i % scales.size()];
  TRY(stored, store_changed(*tensor(slot).task, scaled, nullptr, scaled));
  std::vector<float> change = difference_of(stored.values, scaled);
  for (size_t i = 0; i < change.size() && !scales.empty(); ++i) change[i] /= scales[i % scales.size()];
  return change;
}

Status BlockCalibration::note(Slot slot, const Judge& judge, std::span<const float> weight,
                              std::span<const float> values) {
  const LinearInput input = model::linear_layers()[static_cast<size_t>(slot)].reads;
  LayerEvidence& evidence = tensor(slot).evidence.emplace();
  evidence.tokens = seen(input).tokens;
  evidence.columns = judge.expected.live_columns();
  evidence.rank = judge.expected.rank();
  evidence.signal = judge.expected.of(weight);
  evidence.error = judge.error_of(difference_of(values, weight));
  // Inverse scales make the weight what it was before its columns were scaled.
  std::vector<float> inverse = applied_scales(input);
  for (float& scale : inverse) scale = 1 / scale;
  TRY(nearest, nearest_change(slot, weight, inverse));
  evidence.nearest_error = judge.error_of(nearest);
  evidence.aims_at_float = !judge.pull.empty();
  return {};
}

Status BlockCalibration::settle(Slot slot, const CalibrationStep& step, const Judge& judge,
                                std::span<const float> weight, StoredChange& stored) {
  bool is_worse = false;
  if (step.nearest_if_worse) {
    TRY(nearest, store_changed(*tensor(slot).task, weight, nullptr, weight));
    is_worse =
        judge.error_of(difference_of(stored.values, weight)) > judge.error_of(difference_of(nearest.values, weight));
    if (is_worse) stored = std::move(nearest);
  }
  TRY_VOID(note(slot, judge, weight, stored.values));
  tensor(slot).evidence->is_nearest = is_worse;
  return {};
}

Status BlockCalibration::note_clipped(const Part& part) {
  const CalibrationStep& step = *part.step;
  const SeenInput& input = seen(part.input);
  std::optional<ExpectedError> expected;
  for (const LinearLayer& layer : model::consumers_of(part.input)) {
    const Slot slot = layer.weight;
    bool is_rounded_later = false;
    for (const CalibrationStep& each : steps_)
      is_rounded_later |= rounds_columns(each.method) && is_rounded(each, slot);
    if (!is_quantized(slot) || (is_rounded_later && !step.nearest_if_worse)) continue;
    if (!expected) expected.emplace(input.hessian, input.mean.size(), input.tokens, applied_scales(part.input));
    const Judge judge{*expected, {}};
    const std::vector<float>& weight = (*block_)[slot];
    Tensor& target = tensor(slot);
    TRY(stored, store_changed(*target.task, target.clipped.empty() ? weight : target.clipped, nullptr, weight));
    bool is_worse = false;
    if (step.nearest_if_worse && !target.clipped.empty()) {
      TRY(nearest, nearest_change(slot, weight, {}));
      is_worse = judge.error_of(difference_of(stored.values, weight)) > judge.error_of(nearest);
      if (is_worse) target.clipped.clear();
    }
    if (is_rounded_later) continue;
    if (is_worse) {
      TRY(nearest, store_changed(*target.task, weight, nullptr, weight));
      stored = std::move(nearest);
    }
    TRY_VOID(note(slot, judge, weight, stored.values));
  }
  return {};
}

double BlockCalibration::Judge::error_of(std::span<const float> change) const {
  double sum = 0;
  for (size_t i = 0; i < pull.size(); ++i) sum += double{pull[i]} * change[i];
  return expected.of(change) - 2 * expected.share() * sum;
}

Result<bool> BlockCalibration::scales_help(const Part& part, std::span<const float> scales) {
  const SeenInput& input = seen(part.input);
  const ExpectedError expected(input.hessian, input.mean.size(), input.tokens, applied_scales(part.input));
  const Judge judge{expected, {}};
  double scaled_error = 0, nearest_error = 0;
  for (const LinearLayer& layer : model::consumers_of(part.input)) {
    if (!is_quantized(layer.weight)) continue;
    const std::vector<float>& weight = (*block_)[layer.weight];
    TRY(scaled, nearest_change(layer.weight, weight, scales));
    TRY(nearest, nearest_change(layer.weight, weight, {}));
    scaled_error += judge.error_of(scaled);
    nearest_error += judge.error_of(nearest);
  }
  return scaled_error <= nearest_error;
}

}  // namespace wasmquant
