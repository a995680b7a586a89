// BlockCalibration: column-by-column rounding of weights, and bias correction.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "algorithms/rounding/block_refinement.h"
#include "algorithms/rounding/column_groups.h"
#include "algorithms/rounding/gptaq.h"
#include "algorithms/rounding/gptq_blocks.h"
#include "algorithms/rounding/qronos.h"
#include "algorithms/rounding/refinement.h"
#include "algorithms/scaling/bias_correction.h"
#include "core/message.h"
#include "kernels/matmul.h"
#include "model/linear_layers.h"
#include "pipeline/calibration/rounding_work.h"
#include "pipeline/session/file_tensors.h"

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

// What `choose: "best"` tries: the step as it is given, less and more damping, and scales of each group when it is
// reached, by the importance of groups.
List<GptqOptions> variants_of(const CalibrationStep& step) {
  List<GptqOptions> variants;
  variants.push_back(step.gptq);
  if (!step.chooses_best) return variants;
  constexpr double kDampings[] = {0.1, 10};
  for (const double share : kDampings) variants.emplace_back(step.gptq).damp_percent *= share;
  // Where the groups are those of the order of rounding, the file says so.
  const bool has_index = step.gptq.desc_act && !step.gptq.static_groups;
  if (!has_index && !step.gptq.act_group_aware) variants.emplace_back(step.gptq).act_group_aware = true;
  return variants;
}

constexpr bool has_static_groups(const GptqOptions& options) noexcept {
  return options.static_groups && !options.act_group_aware;
}

constexpr uint32_t bit(Slot slot) noexcept { return 1u << static_cast<uint32_t>(slot); }

// Rows of groups have scales of their own, where nothing depends on all of the weight.
bool has_independent_rows(const QuantizationSpec& spec) noexcept {
  return (spec.qscheme == QScheme::per_group || spec.qscheme == QScheme::per_channel) &&
         spec.scale_format != ScaleFormat::e4m3 && !spec.grid.sign_by_data;
}

// Of a large weight, on which variants are tried.
constexpr size_t kTriedRows = 128;

GgmlType block_type(const WeightLayout& layout) { return *ggml_type_of(layout.components.front().dtype); }

// Of the columns of all blocks that a weight is stored in. Columns in their own order serve types whose orders differ.
ColumnOrder order_of_blocks(const TensorTask& task, bool desc_act) {
  if (!task.file) return block_order(block_type(task.layout), desc_act);
  std::optional<ColumnOrder> order;
  for (const FileTensor& tensor : task.file->tensors()) {
    if (!tensor.has_blocks()) continue;
    const ColumnOrder own = block_order(block_type(tensor.task.layout), desc_act);
    if (order && !(own == *order)) return {false};
    order = own;
  }
  return order.value_or(ColumnOrder{false});
}

// A matrix [n, n] of columns in another order; as it is without one.
std::vector<float> in_order(std::vector<float> matrix, std::span<const uint32_t> columns) {
  if (columns.empty() || matrix.empty()) return matrix;
  std::vector<float> out;
  for (const uint32_t row : columns)
    for (const uint32_t column : columns) out.push_back(matrix[row * columns.size() + column]);
  return out;
}

// Without the inputs held out: H of all is a mean over tokens.
std::vector<float> without(const SeenInput& input) {
  const double all = static_cast<double>(input.tokens), apart = static_cast<double>(input.held_out_tokens);
  std::vector<float> out(input.hessian.size());
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = static_cast<float>((input.hessian[i] * all - input.held_out[i] * apart) / (all - apart));
  return out;
}

}  // namespace

void BlockCalibration::Rounding::add_results(TeamShare share, size_t columns, List<std::span<uint8_t>>& out) {
  switch (stage) {  // the one that comes next
    case Stage::inverses:
      if (share.member == 0) Judgement::add_region(std::span(feedback.factor), out);
      if (has_new_judge && share.member + 1 == share.members) Judgement::add_region(expected->factor(), out);
      return;
    case Stage::columns: {
      const auto own = inverted_columns(feedback.columns(), share);
      for (size_t row = 0; row < own.end; ++row)
        Judgement::add_region(std::span(feedback.factor).subspan(row * columns + own.begin, own.count()), out);
      return;
    }
    case Stage::judging:
      for (RoundedLayer& layer : layers) {
        if (!layer.is_shared) continue;
        const size_t rows = layer.judged.rows, groups = layer.scales.qparams.size() / rows;
        const auto part = share.of(rows, kSharedRows);
        Judgement::add_region(std::span(layer.weight).subspan(part.begin * columns, part.count() * columns), out);
        Judgement::add_region(std::span(layer.scales.qparams).subspan(part.begin * groups, part.count() * groups), out);
        out.push_back({layer.code_bytes() + part.begin * layer.row_bytes, part.count() * layer.row_bytes});
      }
      return;
    case Stage::settling:
      for (RoundedLayer& layer : layers) layer.judged.add_results(share, out);
      return;
    default:
      return;
  }
}

Result<bool> BlockCalibration::round(const Part& part) {
  using Stage = Rounding::Stage;
  if (!rounding_) begin_rounding(part);
  Rounding& work = *rounding_;
  switch (work.stage) {
    case Stage::settling:
      TRY_VOID(settle_rounded(part));
      if (work.pass == work.passes.size()) {
        rounding_.reset();
        seen(part.input).hessian.clear();
        seen(part.input).held_out.clear();
        return true;
      }
      [[fallthrough]];
    case Stage::factors:
      TRY_VOID(find_factors(part));
      work.stage = Stage::inverses;
      break;
    case Stage::inverses:
      if (work.has_new_judge) work.expected->finish(applied_scales(part.input));
      invert_factor(work.feedback, inverted_columns(work.feedback.columns(), share_));
      work.stage = Stage::columns;
      break;
    case Stage::columns:
      TRY_VOID(round_columns(part));
      work.stage = Stage::judging;
      break;
    case Stage::judging:
      TRY_VOID(judge_rounded(part));
      work.stage = Stage::settling;
      break;
  }
  return false;
}

void BlockCalibration::begin_rounding(const Part& part) {
  const CalibrationStep& step = *part.step;
  SeenInput& input = seen(part.input);
  const size_t columns = input.mean.size();
  rounding_.reset(new Rounding);
  Rounding& work = *rounding_;
  work.variants = variants_of(step);
  work.is_trial = step.chooses_best && !input.held_out.empty();
  work.pair = std::move(pairs_[static_cast<size_t>(part.input)]);
  if (work.pair) {
    const double factor = 2 / static_cast<double>(input.tokens);
    work.drift = input_drift(*work.pair, factor);
    input.hessian.assign(work.pair->square().begin(), work.pair->square().end());
    for (float& value : input.hessian) value = static_cast<float>(value * factor);
  }
  work.squares.resize(columns);
  for (size_t j = 0; j < columns; ++j) work.squares[j] = input.hessian[j * columns + j];
  work.least.fill(std::numeric_limits<double>::infinity());
  add_passes(part);
}

void BlockCalibration::add_passes(const Part& part) {
  Rounding& work = *rounding_;
  work.passes.clear();
  work.pass = 0;
  for (size_t variant = 0; variant < work.variants.size(); ++variant)
    for (const LinearLayer& layer : model::consumers_of(architecture_, part.input)) {
      if (!is_rounded(*part.step, layer.weight)) continue;
      if (!work.is_trial && work.chosen[static_cast<size_t>(layer.weight)] != variant) continue;
      const WeightLayout& layout = tensor(layer.weight).task->layout;
      const GptqOptions& options = work.variants[variant];
      const bool has_groups = options.act_group_aware && layout.spec.qscheme == QScheme::per_group;
      ColumnOrder order{options.desc_act || options.act_group_aware,
                        has_groups ? static_cast<uint64_t>(layout.granularity.block) : 0};
      const TensorTask& task = *tensor(layer.weight).task;
      if (layout.codes == CodeStorage::ggml_rows) order = order_of_blocks(task, order.desc_act);
      const std::vector<uint32_t> columns = task.file ? task.file->columns() : std::vector<uint32_t>();
      Rounding::Pass* same = nullptr;
      for (Rounding::Pass& pass : work.passes)
        if (pass.variant == variant && pass.order == order && pass.columns == columns) same = &pass;
      if (same == nullptr) same = &work.passes.emplace_back(Rounding::Pass{variant, order, 0, columns});
      same->layers |= bit(layer.weight);
    }
}

Status BlockCalibration::find_factors(const Part& part) {
  const CalibrationStep& step = *part.step;
  Rounding& work = *rounding_;
  SeenInput& input = seen(part.input);
  const size_t columns = input.mean.size();
  work.has_new_judge = !work.expected;
  if (work.has_new_judge) {
    const std::vector<float>& judge = work.is_trial ? input.held_out : input.hessian;
    work.expected.emplace(judge, columns, work.is_trial ? input.held_out_tokens : input.tokens,
                          ExpectedError::Unfinished{});
    if (share_.member + 1 == share_.members) work.expected->find_factor(judge);
  }
  work.feedback = {};
  if (step.method != CalibrationMethod::gpfq) {
    const GptqOptions& options = work.options();
    double damping = options.damp_percent;
    if (step.method == CalibrationMethod::qronos) damping = relative_damping(input.hessian, columns, step.alpha);
    const bool is_last = !work.is_trial && work.pass + 1 == work.passes.size();
    std::vector<float> hessian = work.is_trial ? without(input)
                                 : is_last     ? std::move(input.hessian)
                                               : std::vector<float>(input.hessian);
    hessian = in_order(std::move(hessian), work.passes[work.pass].columns);
    if (step.refine != 0 && !work.is_trial) {
      work.damped = hessian;
      damp_diagonal(work.damped, columns, damping);
    }
    const ColumnOrder order = work.passes[work.pass].order;
    auto found = factor_hessian(std::move(hessian), columns, damping, order, share_.member == 0);
    if (!found)
      return at(name(model::consumers_of(architecture_, part.input).front().weight), std::move(found.error()));
    work.feedback = std::move(*found);
  }
  work.feedback.squares = work.squares;
  return {};
}

Status BlockCalibration::round_columns(const Part& part) {
  Rounding& work = *rounding_;
  if (part.step->method == CalibrationMethod::gptaq)
    add_drift(work.feedback, in_order(work.drift, work.passes[work.pass].columns), part.step->alpha);
  work.layers.clear();
  for (const LinearLayer& layer : model::consumers_of(architecture_, part.input)) {
    if ((work.passes[work.pass].layers & bit(layer.weight)) == 0) continue;
    RoundedLayer& rounded = work.layers.emplace_back();
    rounded.slot = layer.weight;
    rounded.judged.slot = layer.weight;
    rounded.judged.rows = rows_of(layer.weight);
    if (Status status = round_layer(*part.step, rounded); !status)
      return at(name(layer.weight), std::move(status.error()));
  }
  return {};
}

std::vector<float> BlockCalibration::rounded_rows(Slot slot, const std::vector<float>& values) {
  const WeightLayout& layout = tensor(slot).task->layout;
  const size_t rows = rows_of(slot), columns = values.size() / std::max<size_t>(rows, 1);
  const bool can_part = layout.codes == CodeStorage::ggml_rows || has_independent_rows(layout.spec);
  if (!rounding_->is_trial || !can_part || rows <= kTriedRows) return values;
  std::vector<float> out;
  for (size_t i = 0; i < kTriedRows; ++i) {
    const auto row = values.begin() + static_cast<ptrdiff_t>(i * rows / kTriedRows * columns);
    out.insert(out.end(), row, row + static_cast<ptrdiff_t>(columns));
  }
  return out;
}

Status BlockCalibration::round_layer(const CalibrationStep& step, RoundedLayer& layer) {
  const Rounding& work = *rounding_;
  const GptqOptions& options = work.options();
  const ErrorFeedback& feedback = work.feedback;
  Tensor& target = tensor(layer.slot);
  if (target.task->layout->codes == CodeStorage::ggml_rows) return round_blocks(step, layer);
  QuantizationSpec spec = target.task->layout->spec;
  spec.scale_refit = refits_calibrated(spec);
  if (info_of(spec.dtype).is_block() || !target.task->layout->stages.empty())
    return error_at(ErrorCode::spec_invalid, target.task->name,
                    "{} needs one scale per row or group; {} has none, so exclude the layer or use another dtype",
                    step.name, info_of(spec.dtype).name);
  const bool is_gpfq = step.method == CalibrationMethod::gpfq, was_clipped = !target.clipped.empty();
  const ValueRange joined = joined_range(layer.slot);
  layer.weight = rounded_rows(layer.slot, (*block_)[layer.slot]);
  std::vector<float> clipped = rounded_rows(layer.slot, target.clipped);
  std::vector<float>& ranged = was_clipped ? clipped : layer.weight;
  const size_t columns = seen(model::linear_layers()[static_cast<size_t>(layer.slot)].reads).mean.size();
  layer.judged.rows = layer.weight.size() / columns;
  for (size_t row = 0; row < layer.weight.size() && !is_gpfq; row += columns)
    for (const uint32_t j : feedback.dead) layer.weight[row + j] = ranged[row + j] = 0;
  layer.is_shared = share_.members > 1 && !is_gpfq && has_independent_rows(spec);
  const size_t bytes_of_code = code_bytes_of(spec), rows = layer.judged.rows;
  const auto own = (layer.is_shared ? share_ : TeamShare{}).of(rows, kSharedRows);
  const size_t first = own.begin * columns, count = own.count() * columns;
  const auto observed = info_of(spec.observer).is_per_scale() ? own : TeamShare::Range{0, rows};
  TRY(scales,
      observed_scales(*target.task, std::span(ranged).subspan(observed.begin * columns, observed.count() * columns),
                      joined, feedback.squares));
  if (!is_gpfq && !has_static_groups(options) && !was_clipped) scales.qparams.clear();
  if (step.method == CalibrationMethod::qronos) {
    TRY_VOID(correct_for_drift(feedback, work.drift, layer.weight));
    if (step.refine != 0) layer.corrected = layer.weight;
  }
  layer.set_codes(columns * bytes_of_code);
  uint8_t* const codes = layer.code_bytes();
  if (is_gpfq) {
    TRY_VOID(gpfq(*work.pair, spec, scales.qparams, {options.desc_act}, rows, layer.weight,
                  {codes, layer.weight.size() * bytes_of_code}));
    layer.scales = std::move(scales);
    return {};
  }
  TRY(groups, ColumnGroups::create(spec, rows, columns));
  std::span<const QParams> given = scales.qparams;
  if (layer.is_shared && !given.empty())
    given = given.subspan((own.begin - observed.begin) * groups.count(), own.count() * groups.count());
  TRY(found, gptq(feedback, spec, options, own.count(), std::span(layer.weight).subspan(first, count),
                  {codes + first * bytes_of_code, count * bytes_of_code}, given, scales.second_scale));
  layer.scales.second_scale = scales.second_scale;
  layer.scales.qparams.assign(groups.scale_count(), {});
  const size_t first_scale = layer.is_shared ? own.begin * groups.count() : 0;
  std::copy(found.begin(), found.end(), layer.scales.qparams.begin() + static_cast<ptrdiff_t>(first_scale));
  if (step.refine != 0 && !work.is_trial) refine(step, own, layer);
  return {};
}

Status BlockCalibration::round_rows(const CalibrationStep& step, GgmlType type, std::span<float> values,
                                    std::span<uint8_t> blocks) {
  const Rounding& work = *rounding_;
  if (step.method == CalibrationMethod::qronos)
    TRY_VOID(correct_for_drift(work.feedback, in_order(work.drift, work.passes[work.pass].columns), values));
  const std::vector<float> target(values.begin(), values.end());
  TRY_VOID(gptq_blocks(work.feedback, type, values, blocks));
  for (uint32_t turn = 0; turn < step.refine && !work.is_trial; ++turn)
    refine_blocks(work.damped, type, target, values, blocks);
  return {};
}

Status BlockCalibration::round_file_blocks(const CalibrationStep& step, RoundedLayer& layer) {
  const FileTensors& file = *tensor(layer.slot).task->file;
  const size_t columns = rounding_->feedback.columns(), all = rows_of(layer.slot);
  const auto own = share_.of(layer.judged.rows, kSharedRows);
  const auto row_of = [&](size_t at) { return std::span(layer.weight).subspan(at * columns, columns); };
  layer.set_codes(file.row_bytes());
  for (uint32_t number = 0; number < file.tensors().size(); ++number) {
    const FileTensor& part = file.tensors()[number];
    if (!part.has_blocks()) continue;
    std::vector<size_t> rows;
    std::vector<float> values;
    // A trial has some rows, from all over the weight.
    const auto place_of = [&](size_t at) { return file.place_of(at * all / layer.judged.rows); };
    for (size_t at = own.begin; at < own.end; ++at) {
      if (place_of(at).tensor != number) continue;
      rows.push_back(at);
      file.take(part, place_of(at).row, row_of(at), values);
    }
    const GgmlType type = block_type(part.task.layout);
    const size_t bytes = info_of(type).bytes_of(columns);
    std::vector<uint8_t> blocks(rows.size() * bytes);
    if (!rows.empty()) TRY_VOID(round_rows(step, type, values, blocks));
    for (size_t i = 0; i < rows.size(); ++i) {
      file.put(part, place_of(rows[i]).row, std::span(values).subspan(i * columns, columns), row_of(rows[i]));
      std::copy_n(blocks.begin() + static_cast<ptrdiff_t>(i * bytes), bytes,
                  layer.code_bytes() + rows[i] * layer.row_bytes);
    }
  }
  return {};
}

Status BlockCalibration::round_blocks(const CalibrationStep& step, RoundedLayer& layer) {
  const GgmlType type = block_type(tensor(layer.slot).task->layout);
  layer.weight = rounded_rows(layer.slot, (*block_)[layer.slot]);
  const size_t columns = seen(model::linear_layers()[static_cast<size_t>(layer.slot)].reads).mean.size();
  const size_t rows = layer.judged.rows = layer.weight.size() / columns;
  layer.is_shared = share_.members > 1;
  if (tensor(layer.slot).task->file) return round_file_blocks(step, layer);
  const auto own = share_.of(rows, kSharedRows);
  layer.set_codes(static_cast<size_t>(info_of(type).bytes_of(columns)));
  return round_rows(step, type, std::span(layer.weight).subspan(own.begin * columns, own.count() * columns),
                    {layer.code_bytes() + own.begin * layer.row_bytes, own.count() * layer.row_bytes});
}

void BlockCalibration::refine(const CalibrationStep& step, TeamShare::Range own, RoundedLayer& layer) {
  const Rounding& work = *rounding_;
  const WeightLayout& layout = tensor(layer.slot).task->layout;
  const size_t columns = work.feedback.columns(), bytes = code_bytes_of(layout.spec);
  const auto groups = ColumnGroups::create(layout.spec, layer.judged.rows, columns);
  std::vector<uint32_t> index = group_index_of(step, layer.slot);
  if (index.empty())
    for (size_t j = 0; j < columns; ++j) index.push_back(static_cast<uint32_t>(groups->of(j)));
  std::vector<QParams> scales;
  for (size_t row = own.begin; row < own.end; ++row)
    for (size_t group = 0; group < groups->count(); ++group)
      scales.push_back(layer.scales.qparams[groups->scale_of(row, group)]);
  const size_t first = own.begin * columns, count = own.count() * columns;
  const RefinedRows rows{
      work.damped,
      index,
      groups->count(),
      layout.spec,
      std::span<const float>(layer.corrected.empty() ? (*block_)[layer.slot] : layer.corrected).subspan(first, count),
      std::span(layer.weight).subspan(first, count),
      {layer.code_bytes() + first * bytes, count * bytes},
      scales};
  const bool refits = refits_calibrated(layout.spec) && can_refit(layout.spec);
  const auto refit = [&] {
    if (refits) refit_row_scales(rows, [&](float scale) { return storable_scale(layout, scale, 1.0f); });
  };
  for (uint32_t turn = 0; turn < step.refine; ++turn) {
    refit();
    descend_codes(rows);
  }
  refit();
  for (size_t row = own.begin, at = 0; refits && row < own.end; ++row)
    for (size_t group = 0; group < groups->count(); ++group, ++at)
      layer.scales.qparams[groups->scale_of(row, group)] = scales[at];
}

std::vector<uint32_t> BlockCalibration::group_index_of(const CalibrationStep& step, Slot slot) {
  const GptqOptions& options = rounding_->options();
  const WeightLayout& layout = tensor(slot).task->layout;
  const bool is_static = step.method == CalibrationMethod::gpfq || options.static_groups || options.act_group_aware ||
                         !tensor(slot).clipped.empty();
  if (is_static || layout.spec.qscheme != QScheme::per_group) return {};
  return group_index(rounding_->feedback.order, static_cast<uint64_t>(layout.granularity.block));
}

Status BlockCalibration::judge_rounded(const Part& part) {
  const CalibrationStep& step = *part.step;
  Rounding& work = *rounding_;
  for (RoundedLayer& layer : work.layers) {
    Tensor& target = tensor(layer.slot);
    const std::vector<float>& original = (*block_)[layer.slot];
    if (work.is_trial) {
      TRY_VOID(judge_trial(layer));
      continue;
    }
    const WeightLayout& layout = target.task->layout;
    const bool is_blocks = layout.codes == CodeStorage::ggml_rows;
    const std::vector<uint32_t> groups = is_blocks ? std::vector<uint32_t>() : group_index_of(step, layer.slot);
    const std::span<const uint8_t> codes(layer.code_bytes(), layer.judged.rows * layer.row_bytes);
    auto stored = is_blocks ? store_blocks(*target.task, codes, original)
                  : groups.empty()
                      ? store_modified(*target.task, layer.weight, &layer.scales, original)
                      : store_grouped(*target.task, codes, layer.scales.qparams, groups, layer.weight, original);
    if (!stored) return at(name(layer.slot), std::move(stored.error()));
    layer.weight = {};
    layer.corrected = {};
    layer.codes = {};
    layer.stored.emplace(std::move(*stored));
    const std::vector<float> pull = product_with(original, work.drift);
    const size_t columns = seen(part.input).mean.size();
    const auto own = share_.of(layer.judged.rows, kSharedRows);
    const Status judged =
        judge(layer.judged, *work.expected, pull, original,
              std::span<const float>(layer.stored->values).subspan(own.begin * columns, own.count() * columns),
              step.nearest_if_worse);
    if (!judged) return at(name(layer.slot), Error(judged.error()));
  }
  return {};
}

Status BlockCalibration::settle_rounded(const Part& part) {
  Rounding& work = *rounding_;
  for (RoundedLayer& layer : work.layers) {
    const auto slot = static_cast<size_t>(layer.slot);
    if (work.is_trial) {
      const double error = layer.judged.error_of(Judgement::stored, *work.expected);
      if (!(error < work.least[slot])) continue;
      work.least[slot] = error;
      work.chosen[slot] = work.passes[work.pass].variant;
      continue;
    }
    Tensor& target = tensor(layer.slot);
    std::vector<float>& weight = (*block_)[layer.slot];
    const bool is_worse =
        part.step->nearest_if_worse && layer.judged.error_of(Judgement::stored, *work.expected) >
                                           layer.judged.error_of(Judgement::scaled_nearest, *work.expected);
    if (is_worse) {
      auto nearest = store_modified(*target.task, weight, nullptr, weight);
      if (!nearest) return at(name(layer.slot), std::move(nearest.error()));
      layer.stored.emplace(std::move(*nearest));
    }
    note(layer.judged, *work.expected, is_worse);
    target.stored.emplace(std::move(*layer.stored));
    target.clipped.clear();
    weight = std::move(target.stored->values);
    target.stored->values.clear();
  }
  work.layers.clear();
  if (++work.pass < work.passes.size() || !work.is_trial) return {};
  work.is_trial = false;
  work.expected.reset();
  add_passes(part);
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
