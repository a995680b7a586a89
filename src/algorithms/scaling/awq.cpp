// The search for the exponent of the scales.
#include "algorithms/scaling/awq.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "algorithms/power.h"
#include "algorithms/rounding/column_groups.h"
#include "algorithms/scaling/awq_rounds.h"
#include "algorithms/scaling/scale_search.h"
#include "core/message.h"
#include "kernels/ggml/ggml_blocks.h"
#include "kernels/ggml/ggml_codebook.h"
#include "kernels/kernels.h"
#include "observers/observer.h"
#include "observers/registry.h"
#include "quantize/quantize.h"

namespace wasmquant {
namespace {

constexpr double kSmallestScale = 1e-4;
Error sizes_differ(size_t a, size_t b) {
  return error_at(ErrorCode::shape_mismatch, "", "the lengths {} and {} do not match", a, b);
}

// Round to nearest with min-max scales of x; y may be x.
void round_observed(const Granularity& g, const QuantizationSpec& spec, std::span<const float> x, float* y) {
  RangeObserver observer(g, spec);
  observer.update(x, 0);
  fake_quantize(g, spec, observer.finish(), x, 0, y);
}

// For a matrix whose columns were multiplied by `scales`: squares of the features as they are then.
std::vector<float> scaled_squares(std::span<const float> squares, std::span<const float> scales) {
  std::vector<float> out(squares.begin(), squares.end());
  for (size_t j = 0; j < out.size(); ++j) out[j] /= scales[j] * scales[j];
  return out;
}

// The same with scales that are refit from there. A search of ranges, too, would take its time for each candidate.
Status round_refit(const Granularity& g, QuantizationSpec spec, const std::vector<uint64_t>& shape,
                   std::span<const float> squares, std::span<float> x) {
  spec.observer =
      spec.qscheme == QScheme::per_group ? ObserverId::PerGroupMinMaxObserver : ObserverId::PerChannelMinMaxObserver;
  const std::unique_ptr<Observer> observer = make_observer(spec);
  if (!squares.empty()) TRY_VOID(observer->weigh(squares));
  TRY_VOID(observe(*observer, 0, x, shape));
  TRY(found, observer->finish());
  fake_quantize(g, spec, found.qparams, x, 0, x.data());
  return {};
}

Status round_to_spec(const QuantizationSpec& spec, std::span<const float> scales, std::span<const float> squares,
                     std::span<float> x) {
  const std::vector<uint64_t> shape{x.size() / scales.size(), scales.size()};
  TRY(g, granularity_of(shape, spec));
  if (spec.scale_refit && !x.empty()) return round_refit(g, spec, shape, scaled_squares(squares, scales), x);
  round_observed(g, spec, x, x.data());
  return {};
}

void round_in_blocks(GgmlType type, std::span<const float> scales, std::span<const float> squares, std::span<float> x) {
  const std::vector<float> importance = scaled_squares(squares, scales);
  std::vector<uint8_t> blocks(info_of(type).bytes_of(x.size()));
  kernels::quantize_blocks(type, x.data(), x.size() / scales.size(), scales.size(),
                           importance.empty() ? nullptr : importance.data(), blocks.data());
  kernels::dequantize_blocks(type, blocks.data(), x.size(), x.data());
}

// Whether rounding some rows gives what rounding all gives.
bool has_independent_rows(const AwqLayer& layer, size_t columns) {
  if (layer.blocks) return true;
  const size_t rows = layer.weight.size() / columns;
  const auto groups = ColumnGroups::create(layer.spec, rows, columns);
  return groups && groups->scale_count() == rows * groups->count() && layer.spec.scale_format != ScaleFormat::e4m3;
}

// Adds squared changes of the outputs of the rows of a piece to the sums of their parts.
Status add_errors(const AwqLayer& layer, std::span<const float> scales, std::span<const float> squares,
                  const OutputError& inputs, const AwqPiece& piece, size_t parts, double* of_parts) {
  const size_t columns = scales.size(), rows = layer.weight.size() / columns;
  if (layer.weight.size() % columns != 0) return sizes_differ(layer.weight.size(), columns);
  std::vector<float> weight;
  std::vector<size_t> part_of;
  for (size_t row = 0; row < rows; ++row) {
    const size_t part = row % parts;
    if (part < piece.begin || part >= piece.end) continue;
    const float* const values = layer.weight.data() + row * columns;
    weight.insert(weight.end(), values, values + columns);
    part_of.push_back(part - piece.begin);
  }
  std::vector<float> change(weight.size());
  TRY_VOID(round_scaled(layer, weight, scales, change, squares));
  for (size_t i = 0; i < change.size(); ++i) change[i] -= weight[i];
  std::vector<double> sums(part_of.size());
  inputs.sum_squares({change.data(), columns}, 0, columns, sums);
  for (size_t i = 0; i < sums.size(); ++i) of_parts[part_of[i]] += sums[i];
  return {};
}

}  // namespace

Status awq_scales(const AwqMeans& means, size_t step, std::span<float> scales) {
  const std::span<const double> mean_abs = means.inputs;
  if (scales.size() != mean_abs.size()) return sizes_differ(mean_abs.size(), scales.size());
  const bool is_duo = step >= kAwqSteps;
  const double exponent =
      is_duo ? static_cast<double>(step - kAwqSteps) / kDuoSteps : static_cast<double>(step) / kAwqSteps;
  const auto raw = [&](size_t j) {
    const double divisor = is_duo ? power(means.weights[j], 1 - exponent) + kSmallestScale : 1.0;
    return std::max(power(mean_abs[j], exponent) / divisor, kSmallestScale);
  };
  double smallest = std::numeric_limits<double>::infinity(), largest = 0;
  for (size_t j = 0; j < scales.size(); ++j) {
    if (!std::isfinite(mean_abs[j]))
      return error_at(ErrorCode::value_not_finite, "", "the mean of feature {} is NaN or infinite", j);
    smallest = std::min(smallest, raw(j));
    largest = std::max(largest, raw(j));
  }
  const double middle = std::sqrt(largest * smallest);
  for (size_t j = 0; j < scales.size(); ++j) scales[j] = static_cast<float>(raw(j) / middle);
  return {};
}

AwqLayer layer_in_blocks(std::span<const float> weight, size_t columns, GgmlType type) {
  AwqLayer layer{weight, {}};
  if (!kernels::has_codebook(type)) layer.blocks = type;
  QuantizationSpec& spec = layer.spec;
  spec.dtype = size_t{info_of(type).block_bytes} * 8 < size_t{3} * info_of(type).block ? Dtype::uint2 : Dtype::uint3;
  spec.observer = ObserverId::PerGroupMinMaxObserver;
  spec.qscheme = QScheme::per_group;
  spec.ch_axis = 1;
  spec.group_size = columns % 32 == 0 ? 32 : static_cast<int64_t>(columns);
  spec.symmetric = false;
  return layer;
}

Status round_scaled(const AwqLayer& layer, std::span<const float> weight, std::span<const float> scales,
                    std::span<float> values, std::span<const float> squares) {
  const size_t columns = scales.size();
  if (values.size() != weight.size()) return sizes_differ(values.size(), weight.size());
  if (columns == 0 || weight.size() % columns != 0) return sizes_differ(weight.size(), columns);
  for (size_t at = 0; at < weight.size(); at += columns)
    for (size_t j = 0; j < columns; ++j) values[at + j] = weight[at + j] * scales[j];
  if (layer.blocks)
    round_in_blocks(*layer.blocks, scales, squares, values);
  else
    TRY_VOID(round_to_spec(layer.spec, scales, squares, values));
  for (size_t at = 0; at < weight.size(); at += columns)
    for (size_t j = 0; j < columns; ++j) values[at + j] /= scales[j];
  return {};
}

Status quantize_scaled(std::span<const float> weight, const QuantizationSpec& spec, std::span<const float> scales,
                       std::span<float> values, std::span<const float> squares) {
  return round_scaled({weight, spec}, weight, scales, values, squares);
}

Result<std::vector<double>> weight_means(std::span<const AwqLayer> layers, size_t columns) {
  std::vector<double> means(columns);
  double rows = 0;
  for (const AwqLayer& layer : layers) {
    const size_t height = layer.weight.size() / columns;
    TRY(groups, ColumnGroups::create(layer.spec, height, columns));
    rows += static_cast<double>(height);
    for (size_t row = 0; row < height; ++row)
      for (size_t group = 0; group < groups.count(); ++group) {
        const auto [begin, end] = groups[group];
        const std::span<const float> part = layer.weight.subspan(row * columns + begin, end - begin);
        const float largest = kernels::reduce_absmax(part).value;
        for (size_t j = begin; j < end && largest > 0; ++j)
          means[j] += std::fabs(double{part[j - begin]}) / double{largest};
      }
  }
  for (double& mean : means) mean /= std::max(rows, 1.0);
  return means;
}

Result<AwqChoice> search_scales(std::span<const double> ranges, size_t stride, std::span<float> scales,
                                const CallableRef<Result<double>()>& loss) {
  AwqChoice choice{kAwqSteps, std::numeric_limits<double>::infinity(), 0};
  for (size_t step = 0; step < kAwqSteps; step += stride) {
    TRY_VOID(awq_scales({ranges}, step, scales));
    TRY(found, loss());
    if (step == 0) choice.unscaled_loss = found;
    if (found < choice.loss) choice = {step, found, choice.unscaled_loss};
  }
  if (choice.step == kAwqSteps)
    return Error{ErrorCode::value_not_finite, "", "no scale keeps the change of the output finite"};
  TRY_VOID(awq_scales({ranges}, choice.step, scales));
  return choice;
}

AwqSearch::AwqSearch(std::span<const double> mean_abs, std::vector<double> weight_means,
                     std::span<const AwqLayer> layers, OutputError inputs, size_t rows, bool has_parts)
    : mean_abs_(mean_abs),
      weight_means_(std::move(weight_means)),
      layers_(layers),
      inputs_(std::move(inputs)),
      squares_(inputs_.squares()),
      rows_(rows),
      rounds_(has_parts, means().steps()) {
  make_room();
}

Result<AwqSearch> AwqSearch::create(std::span<const double> mean_abs, std::span<const AwqLayer> layers,
                                    OutputError inputs, bool duo_scaling, size_t fewest_rows_in_parts) {
  const size_t columns = inputs.columns();
  if (mean_abs.size() != columns) return sizes_differ(mean_abs.size(), columns);
  bool has_parts = true;
  size_t rows = 0;
  for (const AwqLayer& layer : layers) {
    rows += layer.weight.size() / columns;
    has_parts &= has_independent_rows(layer, columns);
  }
  has_parts &= rows >= fewest_rows_in_parts;
  std::vector<double> of_weights;
  if (duo_scaling) {
    TRY(found, wasmquant::weight_means(layers, columns));
    of_weights = std::move(found);
  }
  return AwqSearch(mean_abs, std::move(of_weights), layers, std::move(inputs), rows, has_parts);
}

void AwqSearch::make_room() {
  offsets_.assign(1, 0);
  for (const AwqPiece& piece : rounds_.pieces()) offsets_.push_back(offsets_.back() + piece.end - piece.begin);
  losses_.assign(offsets_.back(), 0.0);
}

Status AwqSearch::measure(TeamShare share) {
  const auto own = share.of(losses_.size());
  std::vector<float> scales(mean_abs_.size());
  for (size_t i = 0; i < rounds_.pieces().size(); ++i) {
    const size_t begin = std::max(own.begin, offsets_[i]), end = std::min(own.end, offsets_[i + 1]);
    if (begin >= end) continue;
    AwqPiece piece = rounds_.pieces()[i];
    piece.begin += begin - offsets_[i];
    piece.end = piece.begin + (end - begin);
    TRY_VOID(awq_scales(means(), piece.step, scales));
    for (const AwqLayer& layer : layers_)
      TRY_VOID(add_errors(layer, scales, squares_, inputs_, piece, rounds_.parts(), losses_.data() + begin));
  }
  return {};
}

std::span<double> AwqSearch::losses(TeamShare share) noexcept {
  const auto own = share.of(losses_.size());
  return std::span(losses_).subspan(own.begin, own.count());
}

bool AwqSearch::next() {
  for (size_t i = 0; i < rounds_.pieces().size(); ++i)
    rounds_.set_losses(i, std::span(losses_).subspan(offsets_[i], offsets_[i + 1] - offsets_[i]));
  if (!rounds_.next()) return false;
  make_room();
  return true;
}

Result<AwqChoice> AwqSearch::choice(std::span<float> scales) const {
  const double outputs = static_cast<double>(inputs_.tokens()) * static_cast<double>(rows_);
  TRY(choice, rounds_.choice(std::max(outputs, 1.0)));
  TRY_VOID(awq_scales(means(), choice.step, scales));
  return choice;
}

Result<AwqChoice> search_awq_scales(std::span<const double> mean_abs, std::span<const AwqLayer> layers,
                                    const OutputError& inputs, std::span<float> scales) {
  if (scales.size() != inputs.columns()) return sizes_differ(scales.size(), inputs.columns());
  TRY(search, AwqSearch::create(mean_abs, layers, inputs));
  do {
    TRY_VOID(search.measure({}));
  } while (search.next());
  return search.choice(scales);
}

Result<bool> awq_scaling(const ScaleSearch& search, std::span<float> scales) {
  if (search.layers.empty()) return false;
  TRY(inputs, OutputError::of_hessian(search.input.hessian, scales.size()));
  TRY(choice, search_awq_scales(search.input.mean, search.layers, inputs, scales));
  return choice.step != 0;
}

}  // namespace wasmquant
