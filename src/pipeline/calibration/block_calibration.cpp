// The parts of a block in order: what each captures, the algorithm it runs, and what it stores.
#include "pipeline/calibration/block_calibration.h"

#include <algorithm>
#include <utility>

#include "core/message.h"
#include "model/linear_layers.h"
#include "pipeline/calibration/rounding_work.h"
#include "pipeline/calibration/scaling_work.h"

namespace wasmquant {
namespace {

using model::consumers_of;
using model::LinearInput;
using model::LinearLayer;
using model::Slot;

// Tokens that the scale search runs layers on, taken from several portions of the batch.
constexpr size_t kSampleTokens = 512, kSampleTokensOfPortion = 64;

constexpr LinearInput kInputsInOrder[] = {LinearInput::attention,    LinearInput::latent_query,
                                          LinearInput::latent_key,   LinearInput::encoded,
                                          LinearInput::state_output, LinearInput::attention_output,
                                          LinearInput::feed_forward, LinearInput::feed_forward_output,
                                          LinearInput::layer_input,  LinearInput::layer_output};

/// Of all feed-forwards.
uint64_t widest_of(const model::Architecture& a) noexcept {
  return std::max({a.intermediate, a.routing.width, a.routing.shared_width});
}

constexpr uint32_t bit(LinearInput input) noexcept { return 1u << static_cast<uint32_t>(input); }

}  // namespace

BlockCalibration::BlockCalibration(std::span<CalibrationStep> steps) noexcept : steps_(steps) {}

BlockCalibration::~BlockCalibration() = default;

Error BlockCalibration::at(const std::string& where, Error error) {
  if (error.where.empty()) error.where = where;
  return error;
}

bool BlockCalibration::needs_reference() const noexcept {
  return !steps_.empty() && wasmquant::needs_reference(steps_.back().method);
}

bool BlockCalibration::sees(AlgorithmSees what) const noexcept {
  for (const CalibrationStep& step : steps_)
    if (info_of(step.method).sees == what || (step.nearest_if_worse && what == AlgorithmSees::hessian)) return true;
  return false;
}

const CalibrationStep* BlockCalibration::rounding_step() const noexcept {
  for (const CalibrationStep& step : steps_)
    if (rounds_columns(step.method)) return &step;
  return nullptr;
}

bool BlockCalibration::holds_out() const noexcept {
  return rounding_step() != nullptr && rounding_step()->chooses_best;
}

bool BlockCalibration::corrects_biases() const noexcept {
  return !steps_.empty() && steps_.back().method == CalibrationMethod::bias_correction;
}

bool BlockCalibration::keeps_float_inputs() const noexcept {
  bool any = false;
  for (const CalibrationStep& step : steps_) {
    if (info_of(step.method).sees == AlgorithmSees::nothing) continue;
    if (!step.is_preprocessing) return false;
    any = true;
  }
  return any;
}

bool BlockCalibration::is_rounded(const CalibrationStep& step, Slot slot) const noexcept {
  return is_quantized(slot) && (step.layers >> static_cast<uint32_t>(slot) & 1) != 0;
}

void BlockCalibration::add_parts(const CalibrationStep& step) {
  const CalibrationMethod method = step.method;
  const bool rounds = rounds_columns(method), anew = rounds && step.true_sequential;
  const bool pairs = wasmquant::needs_reference(method);
  const bool is_sampled = method == CalibrationMethod::awq && is_seen_again(step);
  const Capture capture = is_sampled ? Capture::sample : Capture::all;
  uint32_t unseen = pairs ? inputs_ : inputs_ & ~seen_inputs_;
  const auto add_part = [&](Work work, LinearInput input, uint32_t captured) {
    parts_.push_back({work, &step, input, captured, captured == 0 ? Capture::nothing : capture});
  };
  const auto add = [&](Work work, LinearInput input) {
    add_part(work, input, anew ? bit(input) : std::exchange(unseen, 0));
    seen_inputs_ |= parts_.back().captured;
  };
  const auto add_whole = [&](Work work, uint32_t captured) { add_part(work, LinearInput::attention, captured); };
  if (method == CalibrationMethod::rotation) return add_whole(Work::rotate, 0);
  if (method == CalibrationMethod::equalization) return add_whole(Work::equalize, 0);
  if (pairs && reference_parts_++ == 0) add_whole(Work::keep_reference, 0);
  if (method == CalibrationMethod::bias_correction) return add_whole(Work::correct_biases, inputs_);
  for (const LinearInput input : kInputsInOrder) {
    if (rounds) {
      bool any = false;
      for (const LinearLayer& layer : consumers_of(architecture_, input)) any |= is_rounded(step, layer.weight);
      if (any) add(Work::round, input);
    } else if ((step.inputs & bit(input)) != 0 && !producer_of(input, architecture_).empty()) {
      add(Work::scale, input);
    }
  }
  // All scales first: they change the weights that are clipped.
  if (step.method == CalibrationMethod::awq)
    for (const LinearInput input : kInputsInOrder)
      if ((inputs_ & bit(input)) != 0) add(Work::clip, input);
}

bool BlockCalibration::is_seen_again(const CalibrationStep& step) const noexcept {
  if (step.nearest_if_worse) return false;  // which is judged by all inputs
  const CalibrationStep& last = steps_.back();
  if (!rounds_columns(last.method) || !(last.true_sequential || wasmquant::needs_reference(last.method))) return false;
  for (const LinearLayer& layer : model::linear_layers())
    if (is_quantized(layer.weight) && !is_rounded(last, layer.weight)) return false;
  return true;
}

uint64_t BlockCalibration::sampled_tokens() const noexcept {
  const model::Routing& routing = architecture_.routing;
  return is_expert(architecture_) ? kSampledTokens * routing.experts / routing.chosen : kSampledTokens;
}

bool BlockCalibration::is_quantized(Slot slot) const noexcept {
  const auto& task = tensors_[static_cast<size_t>(slot)].task;
  if (!task || task->is_copy) return false;
  if (task->layout->codes == CodeStorage::ggml_rows)
    return info_of(*ggml_type_of(task->layout->components.front().dtype)).block > 1;
  return !info_of(task->layout->spec.dtype).is_plain_cast();
}

Status BlockCalibration::begin(model::Architecture architecture, model::BlockValues& block,
                               List<std::pair<Slot, TensorTask>> tasks) {
  architecture_ = std::move(architecture);
  block_ = &block;
  inputs_ = 0;
  for (const LinearInput input : kInputsInOrder)
    if (!consumers_of(architecture_, input).empty()) inputs_ |= bit(input);
  for (Tensor& each : tensors_) each = {};
  for (SeenInput& input : seen_) input = {};
  for (auto& scales : applied_scales_) scales.clear();
  reference_ = {};
  for (auto& mean : means_) mean.clear();
  tokens_ = {};
  for (auto& [slot, task] : tasks) tensor(slot).task = std::move(task);
  for (const model::BlockWeight& weight : model::block_weights(architecture_)) {
    const auto& task = tensor(weight.slot).task;
    const size_t count = block[weight.slot].size();
    if (!task && (is_expert(architecture_) || weight.is_plain || is_fixed(weight.slot))) continue;
    if (task && task->layout->components.empty())
      return error_at(ErrorCode::argument_invalid, task->name, "is not stored in a dtype that calibration knows");
    const bool fits =
        task && (task->is_copy ? task->source_bytes == count * info_of(task->layout->components[0].dtype).bits / 8
                               : task->layout->rows * task->layout->columns == count);
    if (!fits || count == 0)
      return error_at(ErrorCode::argument_invalid, weight.name, "was not loaded, or has no task in the plan");
  }
  parts_.clear();
  seen_inputs_ = reference_parts_ = 0;
  for (const CalibrationStep& step : steps_) add_parts(step);
  return {};
}

void BlockCalibration::prepare(size_t part) {
  part_ = &parts_[part];
  has_begun_ = false;
  captured_ = part_->captured;
  if (captured_ == 0) return;
  for (const LinearInput input : kInputsInOrder)
    if ((captured_ & bit(input)) != 0) captured_until_ = input;
  for (auto& statistics : statistics_) statistics.reset();
  for (auto& pair : pairs_) pair.reset();
}

Status BlockCalibration::ReferenceSink::accept(uint32_t, LinearInput input, std::span<const float> x, size_t columns) {
  BlockCalibration& c = calibration_;
  const auto i = static_cast<size_t>(input);
  if (input == LinearInput::head || (c.captured_ & bit(input)) == 0) return {};
  if (c.part_->work != Work::correct_biases) {
    c.reference_inputs_[i].assign(x.begin(), x.end());
    return {};
  }
  c.means_[i].resize(columns);
  for (size_t at = 0; at < x.size(); at += columns)
    for (size_t j = 0; j < columns; ++j) c.means_[i][j] += x[at + j];
  c.tokens_[i] += x.size() / columns;
  return {};
}

Status BlockCalibration::accept(uint32_t, LinearInput input, std::span<const float> x, size_t columns) {
  if (input == LinearInput::head || (captured_ & bit(input)) == 0) return {};
  if (part_->work == Work::correct_biases) return {};
  const auto i = static_cast<size_t>(input);
  const bool is_pair = part_->work == Work::round && wasmquant::needs_reference(part_->step->method);
  if (!statistics_[i]) {
    seen_[i].sample.clear();
    statistics_[i] =
        std::make_unique<InputStatistics>(columns, sees(AlgorithmSees::hessian) && !is_pair, share_, holds_out());
    if (is_pair) pairs_[i] = std::make_unique<GpfqInputs>(columns);
  }
  Status added = statistics_[i]->add(x);
  if (added && is_pair) added = pairs_[i]->add(reference_inputs_[i], x);
  std::vector<float>& sample = seen_[i].sample;
  if (sees(AlgorithmSees::sample) && sample.size() < kSampleTokens * columns) {
    const size_t count =
        std::min({x.size(), kSampleTokensOfPortion * columns, kSampleTokens * columns - sample.size()});
    sample.insert(sample.end(), x.begin(), x.begin() + static_cast<ptrdiff_t>(count));
  }
  if (!added) return at(name(consumers_of(architecture_, input).front().weight), std::move(added.error()));
  return {};
}

bool BlockCalibration::ends_at(LinearInput input) const noexcept {
  return captured_ >> static_cast<uint32_t>(input) == 1;
}

bool BlockCalibration::skips(LinearInput input) const noexcept {
  return (captured_ & ((2u << static_cast<uint32_t>(input)) - 1)) == 0;
}

List<std::span<float>> BlockCalibration::shared_sums(size_t member) noexcept {
  List<std::span<float>> out;
  for (const auto& statistics : statistics_)
    for (const bool apart : {false, true})
      if (statistics)
        if (const auto band = apart ? statistics->held_out_band(member) : statistics->hessian_band(member);
            !band.empty())
          out.push_back(band);
  return out;
}

Status BlockCalibration::finish_capture(uint32_t captured) {
  for (size_t i = 0; i < model::kBlockInputs; ++i) {
    if ((captured >> i & 1) == 0) continue;
    if (pairs_[i]) pairs_[i]->finish();
    InputStatistics* const statistics = statistics_[i].get();
    SeenInput& input = seen_[i];
    if (statistics == nullptr && is_expert(architecture_)) continue;
    if (statistics == nullptr) return error_at(ErrorCode::state_invalid, "calibration", "no inputs were seen");
    input.tokens = statistics->tokens();
    input.largest = statistics->largest();
    const std::vector<float> mean = statistics->mean();
    input.mean.assign(mean.begin(), mean.end());
    input.hessian.clear();
    input.held_out = statistics->finish_held_out();
    input.held_out_tokens = statistics->held_out_tokens();
    if (auto hessian = statistics->finish_hessian()) input.hessian = std::move(*hessian);
    statistics_[i].reset();
  }
  return {};
}

Result<bool> BlockCalibration::optimize(size_t index) {
  const Part& part = parts_[index];
  if (!has_begun_) {
    has_begun_ = true;
    if (part.captured != 0 && part.work != Work::correct_biases) TRY_VOID(finish_capture(part.captured));
    captured_ = 0;
    // A run that ended at the input of the layers that change continues there.
    const bool changes_behind = part.work == Work::round && part.input == captured_until_;
    has_changed_ |= part.work != Work::clip && part.work != Work::keep_reference && !changes_behind;
  }
  if (saw_nothing(part)) {
    for (const LinearLayer& layer : consumers_of(architecture_, part.input))
      if (is_quantized(layer.weight)) tensor(layer.weight).evidence.emplace();
    return true;
  }
  for (;;) {
    TRY(is_done, advance(part));
    if (is_done) break;
    if (share_.members > 1) return false;
  }
  const bool rounds_next = index + 1 < parts_.size() && parts_[index + 1].work == Work::round;
  if (rounds_next && part.work != Work::round && part.work != Work::keep_reference) TRY_VOID(settle_copies());
  return true;
}

bool BlockCalibration::saw_nothing(const Part& part) noexcept {
  const bool sees = part.work == Work::scale || part.work == Work::clip || part.work == Work::round;
  return sees && seen(part.input).tokens == 0 && is_expert(architecture_);
}

Result<bool> BlockCalibration::advance(const Part& part) {
  switch (part.work) {
    case Work::rotate:
      steps_.front().rotation.rotate_block(*block_);  // a rotation is always the first step
      break;
    case Work::equalize:
      TRY_VOID(equalize_pairs(part));
      break;
    case Work::keep_reference:
      reference_ = *block_;
      break;
    case Work::correct_biases:
      break;
    case Work::scale:
      return scale(part);
    case Work::clip:
      return clip(part);
    case Work::round:
      return round(part);
  }
  return true;
}

List<std::span<uint8_t>> BlockCalibration::results(size_t member) noexcept {
  List<std::span<uint8_t>> out;
  const TeamShare share = share_.other(member);
  if (rounding_) rounding_->add_results(share, seen(part_->input).mean.size(), out);
  if (scaling_) Judgement::add_region(scaling_->search.losses(share), out);
  if (!clipping_) return out;
  for (const Slot slot : clipping_->clipped) {
    std::vector<float>& clipped = tensor(slot).clipped;
    const auto rows = share.of(rows_of(slot), kSharedRows);
    const size_t columns = seen(part_->input).mean.size();
    Judgement::add_region(std::span(clipped).subspan(rows.begin * columns, rows.count() * columns), out);
  }
  for (Judgement& judgement : clipping_->judged) judgement.add_results(share, out);
  return out;
}

Status BlockCalibration::settle_copies() {
  if (corrects_biases()) return {};
  for (const model::BlockWeight& weight : model::block_weights(architecture_)) {
    Tensor& target = tensor(weight.slot);
    if (is_quantized(weight.slot) || target.stored || !target.task) continue;
    std::vector<float>& values = (*block_)[weight.slot];
    TRY(stored, store_modified(*target.task, values, nullptr, values));
    has_changed_ |= stored.values != values;
    values = stored.values;
    target.stored.emplace(std::move(stored));
  }
  return {};
}

const ValueRange& BlockCalibration::joined_range(Slot slot) noexcept {
  Tensor& first = tensor(slot);
  if (!first.joined.empty() || first.task->joined.empty()) return first.joined;
  const auto is_part = [&](const Tensor& other) {
    if (!other.task) return false;
    bool is_joined = &other == &first;
    for (const auto& part : first.task->joined) is_joined |= part->name == other.task->name;
    return is_joined;
  };
  ValueRange all;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (!is_part(tensors_[i])) continue;
    const kernels::Extent extent = kernels::reduce_extent(ranged(static_cast<Slot>(i)));
    all.add({extent.min, extent.max});
  }
  for (Tensor& each : tensors_)
    if (is_part(each)) each.joined = all;
  return first.joined;
}

Result<StoredValues> BlockCalibration::store(Slot slot) {
  Tensor& target = tensor(slot);
  if (!target.task)
    return error_at(ErrorCode::argument_invalid, "calibration", "slot {} has no tensor", static_cast<uint32_t>(slot));
  std::vector<float>& weight = (*block_)[slot];
  if (corrects_biases()) {
    correct_bias(slot);
    has_changed_ = true;
  }
  if (!target.stored) {
    TRY(stored, store_modified(*target.task, ranged(slot), nullptr, weight, joined_range(slot)));
    if (!keeps_float_inputs()) {
      has_changed_ |= stored.values != weight;
      weight = std::move(stored.values);
    }
    stored.values = {};
    target.stored.emplace(std::move(stored));
  }
  StoredValues out = std::move(*target.stored);
  target.stored.reset();
  target.clipped = {};
  return out;
}

uint64_t BlockCalibration::held_out_bytes(const model::Architecture& all) noexcept {
  const model::Architecture a = model::widest_layer(all);
  const uint64_t hidden = a.hidden, queries = a.query_columns(), wide = widest_of(a);
  return sizeof(float) * (2 * hidden * hidden + queries * queries + wide * wide);
}

uint64_t BlockCalibration::working_bytes(const model::Architecture& all) noexcept {
  const model::Architecture a = model::widest_layer(all);
  const uint64_t hidden = a.hidden, widest = std::max<uint64_t>({hidden, a.query_columns(), widest_of(a)});
  // Every Hessian once, four more copies of the largest while it is factored, judges and waits for another variant, and
  // the largest weight seven times: what is stored of one layer waits for those that read the same input.
  return held_out_bytes(a) + sizeof(float) * (4 * widest * widest + 7 * widest * hidden);
}

}  // namespace wasmquant
