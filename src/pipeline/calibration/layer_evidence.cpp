// BlockCalibration: whether a step is better than rounding to nearest, by the expected change of the layer's output.
#include <algorithm>
#include <optional>
#include <utility>

#include "model/linear_layers.h"
#include "pipeline/calibration/rounding_work.h"

namespace wasmquant {

using model::LinearLayer;
using model::Slot;

namespace {

std::vector<float> difference_of(std::span<const float> values, std::span<const float> weight) {
  std::vector<float> change(weight.size());
  for (size_t i = 0; i < change.size(); ++i) change[i] = values[i] - weight[i];
  return change;
}

}  // namespace

Result<std::vector<float>> BlockCalibration::nearest_values(Slot slot, std::span<const float> weight,
                                                            TeamShare::Range rows) {
  const TensorTask& task = *tensor(slot).task;
  const size_t columns = weight.size() / std::max<size_t>(rows_of(slot), 1);
  std::vector<float> values;
  if (can_store_rows(task, kSharedRows)) {
    for (size_t row = rows.begin; row < rows.end; row += kSharedRows) {
      const size_t count = std::min(kSharedRows, rows.end - row);
      TRY(stored, store_modified_rows(task, kSharedRows, row, weight.subspan(row * columns, count * columns)));
      values.insert(values.end(), stored.values.begin(), stored.values.end());
    }
    return values;
  }
  TRY(stored, store_modified(task, weight, nullptr, weight));
  const auto first = stored.values.begin() + static_cast<ptrdiff_t>(rows.begin * columns);
  values.assign(first, first + static_cast<ptrdiff_t>(rows.count() * columns));
  return values;
}

Result<std::vector<float>> BlockCalibration::nearest_change(Slot slot, std::span<const float> weight,
                                                            std::span<const float> scales, TeamShare::Range rows) {
  std::vector<float> scaled(weight.begin(), weight.end());
  for (size_t i = 0; i < scaled.size() && !scales.empty(); ++i) scaled[i] *= scales[i % scales.size()];
  TRY(change, nearest_values(slot, scaled, rows));
  const size_t first = rows.begin * (weight.size() / std::max<size_t>(rows_of(slot), 1));
  for (size_t i = 0; i < change.size(); ++i) change[i] -= scaled[first + i];
  for (size_t i = 0; i < change.size() && !scales.empty(); ++i) change[i] /= scales[i % scales.size()];
  return change;
}

Status BlockCalibration::judge(Judgement& judgement, const ExpectedError& expected, std::span<const float> pull,
                               std::span<const float> weight, std::span<const float> values, bool with_nearest) {
  const Slot slot = judgement.slot;
  const auto rows = share_.of(judgement.rows, kSharedRows);
  const size_t columns = judgement.rows == 0 ? 0 : weight.size() / judgement.rows;
  const auto own = [&](std::span<const float> all) {
    return all.subspan(rows.begin * columns, rows.count() * columns);
  };
  judgement.aims_at_float = !pull.empty();
  const auto add = [&](Judgement::What what, std::span<const float> change) {
    std::vector<double>& sums = judgement.sums[what];
    sums.resize(2 * judgement.rows);
    expected.sum_rows(change, std::span(sums).subspan(2 * rows.begin, 2 * rows.count()));
    for (size_t i = 0; what != Judgement::signal && i < pull.size(); ++i)
      judgement.pulled[what] += double{pull[i]} * change[i];
  };
  add(Judgement::signal, own(weight));
  add(Judgement::stored, difference_of(values, own(weight)));
  // Inverse scales make the weight what it was before its columns were scaled.
  std::vector<float> inverse = applied_scales(model::linear_layers()[static_cast<size_t>(slot)].reads);
  for (float& scale : inverse) scale = 1 / scale;
  TRY(nearest, nearest_change(slot, weight, inverse, rows));
  add(Judgement::nearest, nearest);
  if (!with_nearest) return {};
  TRY(scaled, nearest_change(slot, weight, {}, rows));
  add(Judgement::scaled_nearest, scaled);
  return {};
}

Status BlockCalibration::judge_trial(RoundedLayer& layer) {
  Judgement& judgement = layer.judged;
  const std::vector<float> original = rounded_rows(layer.slot, (*block_)[layer.slot]);
  const auto rows = share_.of(judgement.rows, kSharedRows);
  const size_t columns = judgement.rows == 0 ? 0 : original.size() / judgement.rows;
  const std::vector<float> change = difference_of(layer.weight, original);
  std::vector<double>& sums = judgement.sums[Judgement::stored];
  sums.resize(2 * judgement.rows);
  rounding_->expected->sum_rows(std::span(change).subspan(rows.begin * columns, rows.count() * columns),
                                std::span(sums).subspan(2 * rows.begin, 2 * rows.count()));
  return {};
}

void BlockCalibration::note(const Judgement& judgement, const ExpectedError& expected, bool is_nearest) {
  LayerEvidence& evidence = tensor(judgement.slot).evidence.emplace();
  evidence.tokens = seen(model::linear_layers()[static_cast<size_t>(judgement.slot)].reads).tokens;
  evidence.columns = expected.live_columns();
  evidence.rank = expected.rank();
  evidence.signal = expected.of_sums(judgement.sums[Judgement::signal]);
  evidence.error = judgement.error_of(is_nearest ? Judgement::scaled_nearest : Judgement::stored, expected);
  evidence.nearest_error = judgement.error_of(Judgement::nearest, expected);
  evidence.aims_at_float = judgement.aims_at_float;
  evidence.is_nearest = is_nearest;
}

bool BlockCalibration::is_rounded_later(Slot slot) const noexcept {
  bool found = false;
  for (const CalibrationStep& step : steps_) found |= rounds_columns(step.method) && is_rounded(step, slot);
  return found;
}

Result<bool> BlockCalibration::scales_help(const Part& part, std::span<const float> scales) {
  const SeenInput& input = seen(part.input);
  const ExpectedError expected(input.hessian, input.mean.size(), input.tokens, applied_scales(part.input));
  double scaled_error = 0, nearest_error = 0;
  for (const LinearLayer& layer : model::consumers_of(architecture_, part.input)) {
    if (!is_quantized(layer.weight)) continue;
    const std::vector<float>& weight = (*block_)[layer.weight];
    const TeamShare::Range rows{0, rows_of(layer.weight)};
    TRY(scaled, nearest_change(layer.weight, weight, scales, rows));
    TRY(nearest, nearest_change(layer.weight, weight, {}, rows));
    scaled_error += expected.of(scaled);
    nearest_error += expected.of(nearest);
  }
  return scaled_error <= nearest_error;
}

}  // namespace wasmquant
