// BlockCalibration: scaling of columns and the rows that produce them, and clipping of weights.
#include <algorithm>
#include <optional>
#include <utility>

#include "algorithms/scaling/scale_search.h"
#include "core/message.h"
#include "kernels/kernels.h"
#include "model/linear_layers.h"
#include "pipeline/calibration/scaling_work.h"

namespace wasmquant {

#define WASMQUANT_SCALING(method, sees, find, names, fields) FindScales find;
#include "tables/algorithms.def"

namespace {

using model::consumers_of;
using model::LinearInput;
using model::LinearLayer;
using model::Slot;

void divide(SeenInput& input, std::span<const float> scales) noexcept {
  const size_t n = scales.size();
  for (size_t i = 0; i < n; ++i) {
    input.largest[i] /= scales[i];
    input.mean[i] /= double{scales[i]};
    for (std::vector<float>* const matrix : {&input.hessian, &input.held_out})
      for (size_t j = 0; j < n && !matrix->empty(); ++j) (*matrix)[i * n + j] /= scales[i] * scales[j];
  }
  for (size_t i = 0; i < input.sample.size(); ++i) input.sample[i] /= scales[i % n];
}

AwqLayer searched_layer(std::span<const float> weight, const WeightLayout& layout) {
  if (layout.codes != CodeStorage::ggml_rows) return {weight, layout.spec};
  return layer_in_blocks(weight, layout.columns, *ggml_type_of(layout.components.front().dtype));
}

constexpr struct {
  CalibrationMethod method;
  FindScales* find;
} kSearches[] = {
#define WASMQUANT_SCALING(method, sees, find, ...) {CalibrationMethod::method, find},
#include "tables/algorithms.def"
};

FindScales& search_of(CalibrationMethod method) noexcept {
  const auto* row = kSearches;
  while (row->method != method) ++row;  // every method of kind scales has a row
  return *row->find;
}

}  // namespace

// With grouped-query attention, heads that share a v head must share its scales: searches, which find one per channel,
// leave that pair out unless the config names it. Then the largest of a v head's scales counts, as in Quark.
bool BlockCalibration::can_scale(const Part& part) const noexcept {
  if (part.input != LinearInput::attention_output) return true;
  if (info_of(part.step->method).sees == AlgorithmSees::ranges) return true;
  return architecture_.heads == architecture_.kv_heads;
}

// Rows that make an input, and their biases: of v, or of up.
BlockCalibration::ProducerRows BlockCalibration::producer_rows(LinearInput input) noexcept {
  model::BlockValues& block = *block_;
  const bool is_value = input == LinearInput::attention_output;
  const size_t rows = is_value ? architecture_.key_columns() : architecture_.intermediate;
  const Slot own = is_value ? Slot::v : Slot::up, fused = is_value ? Slot::q : Slot::gate;
  const Slot slot = block[own].empty() ? fused : own;  // of a fused matrix the last rows
  std::vector<float>&weight = block[slot], &bias = block[model::linear_layers()[static_cast<size_t>(slot)].bias];
  return {std::span(weight).last(rows * architecture_.hidden), std::span(bias).last(bias.empty() ? 0 : rows)};
}

Status BlockCalibration::apply_scales(LinearInput input, std::vector<float>& scales) {
  model::BlockValues& block = *block_;
  const auto divide_layer = [&](std::span<const float> by) {
    const ProducerRows producer = producer_rows(input);
    divide_rows(producer.weight, producer.weight.size() / by.size(), by);
    if (!producer.bias.empty()) divide_rows(producer.bias, 1, by);
  };
  if (input == LinearInput::attention_output) {
    std::vector<float> of_heads(architecture_.key_columns());
    TRY_VOID(share_scales(scales, of_heads));
    divide_layer(of_heads);
  } else if (input == LinearInput::feed_forward_output) {
    divide_layer(scales);
  } else {
    const Slot norm = input == LinearInput::attention ? Slot::input_norm : Slot::feed_forward_norm;
    if (architecture_.norms.plus_one)
      divide_offset_norm(block[norm], scales);
    else
      divide_rows(block[norm], 1, scales);
    if (std::vector<float>& bias = block[model::norm_bias(norm)]; !bias.empty()) divide_rows(bias, 1, scales);
  }
  for (const LinearLayer& layer : consumers_of(architecture_, input)) scale_columns(block[layer.weight], scales);
  divide(seen(input), scales);
  std::vector<float>& applied = applied_scales(input);
  if (applied.empty()) applied.assign(scales.size(), 1.0f);
  for (size_t i = 0; i < scales.size(); ++i) applied[i] *= scales[i];
  return {};
}

// Heads that share a v head share its scales, the largest of them.
Status BlockCalibration::share_scales(std::span<float> scales, std::span<float> of_heads) const {
  return share_head_scales(scales, architecture_.heads / architecture_.kv_heads, architecture_.head_dim, of_heads);
}

Status BlockCalibration::equalize_pairs(const Part& part) {
  model::BlockValues& block = *block_;
  const size_t dim = architecture_.head_dim, repeats = architecture_.heads / architecture_.kv_heads;
  const auto part_of = [](std::span<float> values, size_t begin, size_t count) {
    return values.empty() ? std::span<float>() : values.subspan(begin, count);
  };
  List<EqualizedRegion> regions;
  if (!producer_of(LinearInput::feed_forward_output, architecture_).empty()) {
    const ProducerRows up = producer_rows(LinearInput::feed_forward_output);
    EqualizedRegion& gated = regions.emplace_back();
    gated.channels = architecture_.intermediate;
    gated.sources.push_back({up.weight, up.bias});
    gated.sinks.push_back({block[Slot::down]});
  }
  // `repeats` adjacent o heads in each row read one v head.
  const bool has_values = !producer_of(LinearInput::attention_output, architecture_).empty();
  for (size_t head = 0; has_values && head < architecture_.kv_heads; ++head) {
    const ProducerRows v = producer_rows(LinearInput::attention_output);
    EqualizedRegion& values = regions.emplace_back();
    values.channels = dim;
    const size_t inputs = dim * architecture_.hidden, read = repeats * dim;
    values.sources.push_back({part_of(v.weight, head * inputs, inputs), part_of(v.bias, head * dim, dim)});
    for (size_t row = 0; row < architecture_.hidden; ++row)
      values.sinks.push_back({part_of(block[Slot::o], row * architecture_.query_columns() + head * read, read)});
  }
  if (Status done = equalize({regions.data(), regions.size()}, part.step->equalization); !done) {
    for (const model::BlockWeight& weight : model::block_weights(architecture_))
      if (const int64_t found = kernels::find_non_finite(block[weight.slot]); found >= 0)
        return error_at(ErrorCode::value_not_finite, name(weight.slot), "element {} is NaN or infinite", found);
    return at(name(Slot::o), std::move(done.error()));
  }
  return {};
}

Result<bool> BlockCalibration::scale(const Part& part) {
  const CalibrationStep& step = *part.step;
  const Slot first = consumers_of(architecture_, part.input).front().weight;
  const auto failed = [&](Error& error) { return at(name(first), std::move(error)); };
  if (scaling_) {
    if (scaling_->search.next()) {
      if (Status measured = scaling_->search.measure(share_); !measured) return failed(measured.error());
      return false;
    }
    std::vector<float> scales(seen(part.input).mean.size());
    const auto choice = scaling_->search.choice(scales);
    scaling_.reset();
    if (!choice) return at(name(first), Error(choice.error()));
    if (choice->step != 0) TRY_VOID(found_scales(part, scales));
    return true;
  }
  if (!can_scale(part) && !step.names_inputs) return true;
  const SeenInput& input = seen(part.input);
  std::vector<float> of_weights(input.largest.size()), scales(input.largest.size());
  List<AwqLayer> layers;
  for (const LinearLayer& layer : consumers_of(architecture_, part.input)) {
    const Slot slot = layer.weight;
    if (Status status = accumulate_column_absmax((*block_)[slot], of_weights); !status)
      return at(name(slot), std::move(status.error()));
    if (is_quantized(slot)) layers.push_back(searched_layer((*block_)[slot], tensor(slot).task->layout));
  }
  if (step.method == CalibrationMethod::awq) {
    if (layers.empty()) return true;
    auto inputs = OutputError::of_hessian(input.hessian, scales.size());
    if (!inputs) return failed(inputs.error());
    // Moving a list leaves its items where they are.
    const std::span<const AwqLayer> searched(layers.data(), layers.size());
    const size_t fewest = is_expert(architecture_) ? kFewestRowsOfExpert : kFewestRowsInParts;
    auto search = AwqSearch::create(input.mean, searched, std::move(*inputs), step.duo_scaling, fewest);
    if (!search) return failed(search.error());
    scaling_.reset(new Scaling{std::move(layers), std::move(*search)});
    if (Status measured = scaling_->search.measure(share_); !measured) return failed(measured.error());
    return false;
  }
  auto found = search_of(step.method)({input,
                                       of_weights,
                                       {layers.data(), layers.size()},
                                       step.smooth_quant,
                                       step.scale_loss,
                                       step.input_spec ? &*step.input_spec : nullptr},
                                      scales);
  if (!found) return failed(found.error());
  if (*found) TRY_VOID(found_scales(part, scales));
  return true;
}

Status BlockCalibration::found_scales(const Part& part, std::vector<float>& scales) {
  const CalibrationStep& step = *part.step;
  if (step.nearest_if_worse && !step.quantizes_inputs) {
    if (part.input == LinearInput::attention_output) {
      std::vector<float> of_heads(architecture_.key_columns());
      TRY_VOID(share_scales(scales, of_heads));
    }
    TRY(helps, scales_help(part, scales));
    if (!helps) return {};
  }
  return apply_scales(part.input, scales);
}

// Queries and keys are multiplied together, so the error of their outputs says little about clipping.
bool BlockCalibration::is_clipped(Slot slot) noexcept {
  if (!is_quantized(slot) || slot == Slot::q || slot == Slot::k) return false;
  const WeightLayout& layout = tensor(slot).task->layout;
  // Groups whose scales are those of the weight when they are rounded have no use for limits of what it was.
  const bool is_by_groups = is_rounded_later(slot) && rounding_step()->gptq.act_group_aware;
  if (is_by_groups && layout.spec.qscheme == QScheme::per_group) return false;
  // Nor have scales that are fit to the weight that is rounded.
  if (is_rounded_later(slot) && refits_calibrated(layout.spec)) return false;
  return layout.spec.qscheme != QScheme::per_tensor && layout.codes != CodeStorage::ggml_rows;
}

Result<bool> BlockCalibration::clip(const Part& part) {
  const SeenInput& input = seen(part.input);
  if (!clipping_) {
    clipping_.reset(new Clipping);
    for (const LinearLayer& layer : consumers_of(architecture_, part.input)) {
      const Slot slot = layer.weight;
      if (!is_clipped(slot)) continue;
      std::vector<float>& clipped = tensor(slot).clipped = (*block_)[slot];
      const auto rows = share_.of(rows_of(slot), kSharedRows);
      const std::span<float> own =
          std::span(clipped).subspan(rows.begin * input.mean.size(), rows.count() * input.mean.size());
      if (Status status = clip_weight(own, rows.count(), tensor(slot).task->layout->spec, input.hessian); !status)
        return at(name(slot), std::move(status.error()));
      clipping_->clipped.push_back(slot);
    }
    return false;
  }
  if (clipping_->expected) {
    settle_clipped();
    clipping_.reset();
    return true;
  }
  clipping_->clipped.clear();
  for (const LinearLayer& layer : consumers_of(architecture_, part.input)) {
    const Slot slot = layer.weight;
    if (!is_quantized(slot)) continue;
    const bool may_be_undone = part.step->nearest_if_worse && !tensor(slot).clipped.empty();
    if (is_rounded_later(slot) && !may_be_undone) continue;
    if (!clipping_->expected)
      clipping_->expected.emplace(input.hessian, input.mean.size(), input.tokens, applied_scales(part.input));
    const std::vector<float>& weight = (*block_)[slot];
    TRY(values, nearest_values(slot, ranged(slot), share_.of(rows_of(slot), kSharedRows)));
    clipping_->judged.push_back({slot, rows_of(slot)});
    TRY_VOID(judge(clipping_->judged.back(), *clipping_->expected, {}, weight, values, may_be_undone));
  }
  if (clipping_->expected) return false;
  clipping_.reset();
  return true;
}

void BlockCalibration::settle_clipped() {
  for (const Judgement& judgement : clipping_->judged) {
    const ExpectedError& expected = *clipping_->expected;
    const bool is_worse =
        !judgement.sums[Judgement::scaled_nearest].empty() &&
        judgement.error_of(Judgement::stored, expected) > judgement.error_of(Judgement::scaled_nearest, expected);
    if (is_worse) tensor(judgement.slot).clipped.clear();
    if (is_rounded_later(judgement.slot)) continue;
    note(judgement, expected, is_worse);
    tensor(judgement.slot).evidence->is_nearest = false;  // scales are still AWQ's
  }
}

}  // namespace wasmquant
