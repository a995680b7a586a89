#include "pipeline/block_calibration.h"

#include <algorithm>
#include <utility>

#include "algorithms/awq.h"
#include "core/message.h"
#include "model/linear_layers.h"

namespace wasmquant {
namespace {

using model::LinearInput;
using model::LinearLayer;
using model::readers_of;
using model::Slot;

constexpr uint32_t bit(LinearInput input) noexcept { return 1u << static_cast<uint32_t>(input); }

Error at(const std::string& where, Error error) {
  if (error.where.empty()) error.where = where;
  return error;
}

void divide(SeenInput& input, std::span<const float> scales) noexcept {
  const size_t n = scales.size();
  for (size_t i = 0; i < n; ++i) {
    input.largest[i] /= scales[i];
    input.mean[i] /= double{scales[i]};
    for (size_t j = 0; j < n && !input.gram.empty(); ++j) input.gram[i * n + j] /= scales[i] * scales[j];
  }
}

}  // namespace

BlockCalibration::BlockCalibration(const model::Architecture& architecture,
                                   std::span<const CalibrationStep> steps) noexcept
    : architecture_(architecture), steps_(steps) {}

void BlockCalibration::add_parts(const CalibrationStep& step) {
  constexpr LinearInput kInputs[] = {LinearInput::attention, LinearInput::attention_output, LinearInput::feed_forward,
                                     LinearInput::feed_forward_output};
  const bool is_gptq = step.method == CalibrationMethod::gptq;
  uint32_t unseen = parts_.empty() || (is_gptq && step.true_sequential) ? 0b1111 : 0;
  const auto add = [&](Work work, LinearInput input) {
    const uint32_t captured = is_gptq && step.true_sequential ? bit(input) : std::exchange(unseen, 0);
    parts_.push_back({work, &step, input, captured});
  };
  for (const LinearInput input : kInputs) {
    if (is_gptq) {
      bool any = false;
      for (const LinearLayer& layer : readers_of(input))
        any |= is_quantized(layer.weight) && (step.layers >> static_cast<uint32_t>(layer.weight) & 1) != 0;
      if (any) add(Work::gptq, input);
    } else if ((step.inputs & bit(input)) != 0) {
      add(step.method == CalibrationMethod::awq ? Work::scale : Work::smooth, input);
    }
  }
  // Scales first, all of them: they change the weights that are clipped.
  if (step.method == CalibrationMethod::awq)
    for (const LinearInput input : kInputs) add(Work::clip, input);
}

bool BlockCalibration::is_quantized(Slot slot) const noexcept {
  const auto& task = tensors_[static_cast<size_t>(slot)].task;
  return task && !task->is_copy && !info_of(task->layout.spec.dtype).is_plain_cast();
}

Status BlockCalibration::begin(model::BlockValues& block, List<std::pair<Slot, TensorTask>> tasks) {
  block_ = &block;
  for (Tensor& each : tensors_) each = {};
  for (SeenInput& input : seen_) input = {};
  for (auto& [slot, task] : tasks) tensor(slot).task = std::move(task);
  for (const model::BlockWeight& weight : model::block_weights(architecture_)) {
    const auto& task = tensor(weight.slot).task;
    const size_t count = block[weight.slot].size();
    if (task && task->layout.components.empty())
      return error_at(ErrorCode::argument_invalid, task->name, "is not stored in a dtype that calibration knows");
    const bool fits =
        task && (task->is_copy ? task->source_bytes == count * info_of(task->layout.components[0].dtype).bits / 8
                               : task->layout.rows * task->layout.columns == count);
    if (!fits || count == 0)
      return error_at(ErrorCode::argument_invalid, weight.name, "was not loaded, or has no task in the plan");
  }
  parts_.clear();
  for (const CalibrationStep& step : steps_) add_parts(step);
  return {};
}

void BlockCalibration::prepare(size_t part) {
  captured_ = parts_[part].captured;
  for (auto& statistics : statistics_) statistics.reset();
}

Status BlockCalibration::accept(uint32_t, LinearInput input, std::span<const float> x, size_t columns) {
  if (input == LinearInput::head || (captured_ & bit(input)) == 0) return {};
  auto& statistics = statistics_[static_cast<size_t>(input)];
  if (!statistics) {
    const bool needs_gram = steps_.back().method != CalibrationMethod::smooth_quant;
    statistics = std::make_unique<InputStatistics>(columns, needs_gram);
  }
  if (Status added = statistics->add(x); !added)
    return at(name(readers_of(input).front().weight), std::move(added.error()));
  return {};
}

bool BlockCalibration::ends_at(LinearInput input) const noexcept {
  return captured_ >> static_cast<uint32_t>(input) == 1;
}

Status BlockCalibration::finish_capture(uint32_t captured) {
  for (size_t i = 0; i < model::kBlockInputs; ++i) {
    if ((captured >> i & 1) == 0) continue;
    InputStatistics* const statistics = statistics_[i].get();
    if (statistics == nullptr) return error_at(ErrorCode::state_invalid, "calibration", "no inputs were seen");
    SeenInput& input = seen_[i];
    input.largest = statistics->largest();
    const std::vector<float> mean = statistics->mean();
    input.mean.assign(mean.begin(), mean.end());
    input.gram.clear();
    if (auto gram = statistics->finish_hessian()) input.gram = std::move(*gram);
    statistics_[i].reset();
  }
  return {};
}

Status BlockCalibration::optimize(size_t index) {
  const Part& part = parts_[index];
  if (part.captured != 0) TRY_VOID(finish_capture(part.captured));
  captured_ = 0;
  switch (part.work) {
    case Work::smooth:
      return smooth(part);
    case Work::scale:
      return scale(part);
    case Work::clip:
      return clip(part);
    case Work::gptq:
      return run_gptq(part);
  }
  return {};
}

bool BlockCalibration::can_scale(const Part& part) const noexcept {
  if (part.input != LinearInput::attention_output || part.work != Work::scale) return true;
  return architecture_.heads == architecture_.kv_heads;
}

Status BlockCalibration::apply_scales(LinearInput input, std::vector<float>& scales) {
  model::BlockValues& block = *block_;
  const auto divide_layer = [&](Slot weight, Slot bias, std::span<const float> by) {
    divide_rows(block[weight], block[weight].size() / by.size(), by);
    if (!block[bias].empty()) divide_rows(block[bias], 1, by);
  };
  if (input == LinearInput::attention_output) {
    std::vector<float> of_heads(architecture_.key_columns());
    TRY_VOID(share_head_scales(scales, architecture_.heads / architecture_.kv_heads, architecture_.head_dim, of_heads));
    divide_layer(Slot::v, Slot::v_bias, of_heads);
  } else if (input == LinearInput::feed_forward_output) {
    divide_layer(Slot::up, Slot::up_bias, scales);
  } else {
    std::vector<float>& norm = block[input == LinearInput::attention ? Slot::input_norm : Slot::feed_forward_norm];
    if (architecture_.norm_plus_one)
      divide_offset_norm(norm, scales);
    else
      divide_rows(norm, 1, scales);
  }
  for (const LinearLayer& layer : readers_of(input)) scale_columns(block[layer.weight], scales);
  divide(seen(input), scales);
  return {};
}

Status BlockCalibration::smooth(const Part& part) {
  const std::vector<float>& largest = seen(part.input).largest;
  std::vector<float> of_weights(largest.size()), scales(largest.size());
  for (const LinearLayer& layer : readers_of(part.input)) {
    const Slot slot = layer.weight;
    if (Status status = accumulate_column_absmax((*block_)[slot], of_weights); !status)
      return at(name(slot), std::move(status.error()));
  }
  if (Status status = smooth_scales(largest, of_weights, part.step->smooth_quant, scales); !status)
    return at(name(readers_of(part.input).front().weight), std::move(status.error()));
  return apply_scales(part.input, scales);
}

Status BlockCalibration::scale(const Part& part) {
  const Slot first = readers_of(part.input).front().weight;
  if (!can_scale(part)) {
    if (!part.step->names_inputs) return {};
    return error_at(ErrorCode::shape_mismatch, name(first),
                    "has {} inputs and v_proj {} outputs, which AWQ cannot scale together; leave v_proj out of {}",
                    architecture_.query_columns(), architecture_.key_columns(),
                    text_of("{}/scaling_layers", part.step->where));
  }
  List<AwqLayer> layers;
  for (const LinearLayer& layer : readers_of(part.input))
    if (is_quantized(layer.weight)) layers.push_back({(*block_)[layer.weight], tensor(layer.weight).task->layout.spec});
  if (layers.empty()) return {};
  const SeenInput& input = seen(part.input);
  std::vector<float> scales(input.mean.size());
  auto inputs = OutputError::of_gram(input.gram, scales.size());
  if (!inputs) return at(name(first), std::move(inputs.error()));
  auto choice = search_awq_scales(input.mean, std::span(layers.data(), layers.size()), *inputs, scales);
  if (!choice) return at(name(first), std::move(choice.error()));
  return choice->step == 0 ? Status() : apply_scales(part.input, scales);
}

Status BlockCalibration::clip(const Part& part) {
  std::optional<OutputError> inputs;
  for (const LinearLayer& layer : readers_of(part.input)) {
    const Slot slot = layer.weight;
    // Queries and keys meet in a product: their outputs' error says little about what clipping does.
    if (!is_quantized(slot) || slot == Slot::q || slot == Slot::k) continue;
    const TensorTask& task = *tensor(slot).task;
    if (task.layout.spec.qscheme == QScheme::per_tensor) continue;
    const SeenInput& input = seen(part.input);
    if (!inputs) {
      auto made = OutputError::of_gram(input.gram, input.mean.size());
      if (!made) return at(task.name, std::move(made.error()));
      inputs.emplace(std::move(*made));
    }
    tensor(slot).clipped = (*block_)[slot];
    if (Status status = clip_weight(tensor(slot).clipped, task.layout.rows, task.layout.spec, *inputs); !status)
      return at(task.name, std::move(status.error()));
  }
  return {};
}

Status BlockCalibration::run_gptq(const Part& part) {
  SeenInput& input = seen(part.input);
  const Slot first = readers_of(part.input).front().weight;
  const size_t columns = input.mean.size();
  auto feedback =
      error_feedback_of(std::move(input.gram), columns, part.step->gptq.damp_percent, part.step->gptq.desc_act);
  input.gram.clear();
  if (!feedback) return at(name(first), std::move(feedback.error()));
  for (const LinearLayer& layer : readers_of(part.input)) {
    const Slot slot = layer.weight;
    if (!is_quantized(slot) || (part.step->layers >> static_cast<uint32_t>(slot) & 1) == 0) continue;
    if (Status status = run_gptq_on(slot, *feedback, part.step->gptq); !status)
      return at(name(slot), std::move(status.error()));
  }
  return {};
}

Status BlockCalibration::run_gptq_on(Slot slot, const ErrorFeedback& feedback, const GptqOptions& options) {
  Tensor& target = tensor(slot);
  const WeightLayout& layout = target.task->layout;
  const QuantizationSpec& spec = layout.spec;
  if (info_of(spec.dtype).is_block() || !layout.stages.empty())
    return error_at(ErrorCode::spec_invalid, target.task->name,
                    "gptq needs one scale per row or group; {} has none, so exclude the layer or take another dtype",
                    info_of(spec.dtype).name);
  std::vector<float>& weight = (*block_)[slot];
  std::vector<float> original = weight;
  std::vector<float>& ranged = target.clipped.empty() ? weight : target.clipped;
  for (size_t row = 0; row < weight.size(); row += feedback.columns())
    for (const uint32_t j : feedback.dead) weight[row + j] = ranged[row + j] = 0;
  WeightScales scales;
  if (options.static_groups || !target.clipped.empty()) {
    TRY(observed, observed_scales(*target.task, ranged));
    scales = std::move(observed);
  }
  std::vector<uint32_t> codes(weight.size() * code_bytes_of(spec) / sizeof(uint32_t) + 1);
  TRY(found, gptq(feedback, spec, options, layout.rows, weight,
                  {reinterpret_cast<uint8_t*>(codes.data()), weight.size() * code_bytes_of(spec)}, scales.qparams));
  scales.qparams = std::move(found);
  target.clipped.clear();
  TRY(stored, store_changed(*target.task, weight, &scales, original));
  weight = std::move(stored.values);
  target.stored.emplace(std::move(stored));
  return {};
}

Result<StoredChange> BlockCalibration::store(Slot slot) {
  Tensor& target = tensor(slot);
  if (!target.task)
    return error_at(ErrorCode::argument_invalid, "calibration", "slot {} has no tensor", static_cast<uint32_t>(slot));
  std::vector<float>& weight = (*block_)[slot];
  if (!target.stored) {
    TRY(stored, store_changed(*target.task, target.clipped.empty() ? weight : target.clipped, nullptr, weight));
    weight = std::move(stored.values);
    target.stored.emplace(std::move(stored));
  }
  StoredChange out = std::move(*target.stored);
  target.stored.reset();
  target.clipped = {};
  return out;
}

uint64_t BlockCalibration::working_bytes(const model::Architecture& a) noexcept {
  const uint64_t hidden = a.hidden, queries = a.query_columns(), wide = a.intermediate;
  const uint64_t widest = std::max({hidden, queries, wide});
  const uint64_t grams = 2 * hidden * hidden + queries * queries + wide * wide;
  // Each Gram matrix once, the largest of them twice more while it is factored, and the largest weight four times.
  return sizeof(float) * (grams + 2 * widest * widest + 4 * widest * hidden);
}

}  // namespace wasmquant
