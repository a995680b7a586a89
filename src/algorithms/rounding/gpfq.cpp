// The loop over columns, a strip of rows at a time, and the sums of the inputs that it needs.
#include "algorithms/rounding/gpfq.h"

#include <algorithm>
#include <cmath>

#include "algorithms/linear_algebra.h"
#include "algorithms/rounding/column_groups.h"
#include "core/message.h"
#include "core/order.h"
#include "quantize/quantize.h"

namespace wasmquant {
namespace {

constexpr size_t kGpfqStripRows = 64;

// One call of gpfq().
struct Gpfq {
  const GpfqInputs& inputs;
  const QuantizationSpec& spec;
  const GpfqOptions& options;
  std::span<const QParams> qparams;
  size_t columns;
  ColumnGroups groups;
  std::span<float> weight;
  std::span<uint8_t> codes;
  std::vector<float> sums = {};  // <u, x'_t> but for column t itself, [columns][kGpfqStripRows]

  // T, in units of a scale.
  float bound() const noexcept {
    const double largest = static_cast<double>((uint64_t{1} << (options.accumulator_bits - 1)) - 1);
    const int exponent = (options.input_is_signed ? 1 : 0) - static_cast<int>(options.input_bits);
    return static_cast<float>(largest * power_of_two(exponent));
  }

  // a_t of the strip to codes and values; `used` is z.
  void quantize_column(size_t t, size_t row, size_t count, float* a, float* used) noexcept {
    QParams scales[kGpfqStripRows];
    alignas(4) uint8_t code[4 * kGpfqStripRows];
    for (size_t r = 0; r < count; ++r) {
      scales[r] = qparams[groups.scale_of(row + r, groups.of(t))];
      if (options.accumulator_bits == 0) continue;
      const float most = std::fabs(scales[r].scale) * std::max(bound() - used[r], 0.0f);
      a[r] = std::clamp(a[r], -most, most);
    }
    Granularity g;
    g.axis = count;  // one scale per element
    quantize(g, spec, {scales, count}, kernels::Path::fake, {a, count}, 0, code);
    dequantize(g, spec, {scales, count}, code, count, 0, a);
    const size_t bytes = code_bytes_of(spec);
    for (size_t r = 0; r < count; ++r) {
      used[r] += std::fabs(a[r] / scales[r].scale);
      std::copy_n(code + r * bytes, bytes, codes.data() + ((row + r) * columns + t) * bytes);
    }
  }

  void run_strip(const List<uint32_t>& order, size_t row, size_t count) {
    float w[kGpfqStripRows], value[kGpfqStripRows], used[kGpfqStripRows] = {};
    std::fill(sums.begin(), sums.end(), 0.0f);
    for (size_t i = 0; i < columns; ++i) {
      const size_t t = order[i];
      const float* const cross = inputs.cross().data() + t * columns;
      const float* const square = inputs.square().data() + t * columns;
      for (size_t r = 0; r < count; ++r) {
        w[r] = weight[(row + r) * columns + t];
        value[r] = square[t] > 0 ? (sums[t * kGpfqStripRows + r] + w[r] * cross[t]) / square[t] : 0.0f;
      }
      quantize_column(t, row, count, value, used);
      for (size_t r = 0; r < count; ++r) weight[(row + r) * columns + t] = value[r];
      for (size_t j = i + 1; j < columns; ++j) {
        const std::span<float> sum(sums.data() + order[j] * kGpfqStripRows, count);
        subtract_scaled(sum, -cross[order[j]], w);
        subtract_scaled(sum, square[order[j]], value);
      }
    }
  }
};

}  // namespace

GpfqInputs::GpfqInputs(size_t columns)
    : columns_(columns),
      panel_(kProductDepth * columns),
      quantized_panel_(kProductDepth * columns),
      cross_(columns * columns),
      square_(columns * columns) {}

void GpfqInputs::sum_panel() noexcept {
  add_product(1, {panel_.data(), columns_}, {quantized_panel_.data(), columns_}, panel_rows_, columns_, columns_,
              {cross_.data(), columns_});
  add_symmetric_product(1, {quantized_panel_.data(), columns_}, panel_rows_, columns_, {square_.data(), columns_});
  panel_rows_ = 0;
}

Status GpfqInputs::add(std::span<const float> x, std::span<const float> quantized) {
  if (columns_ == 0 || x.size() % columns_ != 0 || quantized.size() != x.size())
    return error_at(ErrorCode::shape_mismatch, "",
                    "{} and {} input values are not the same number of rows of {} features", x.size(), quantized.size(),
                    columns_);
  for (const std::span<const float> values : {x, quantized})
    if (const int64_t at = kernels::find_non_finite(values); at >= 0)
      return error_at(ErrorCode::value_not_finite, "", "input row {}, column {} is NaN or infinite",
                      static_cast<uint64_t>(at) / columns_, static_cast<uint64_t>(at) % columns_);
  for (size_t row = 0; row < x.size(); row += columns_) {
    std::copy_n(x.data() + row, columns_, panel_.data() + panel_rows_ * columns_);
    std::copy_n(quantized.data() + row, columns_, quantized_panel_.data() + panel_rows_ * columns_);
    if (++panel_rows_ == kProductDepth) sum_panel();
  }
  return {};
}

void GpfqInputs::finish() noexcept {
  if (panel_rows_ != 0) sum_panel();
  for (size_t i = 0; i < columns_; ++i)
    for (size_t j = 0; j < i; ++j) square_[i * columns_ + j] = square_[j * columns_ + i];
}

Status gpfq(const GpfqInputs& inputs, const QuantizationSpec& spec, std::span<const QParams> qparams,
            const GpfqOptions& options, uint64_t rows, std::span<float> weight, std::span<uint8_t> codes) {
  const size_t n = inputs.columns();
  TRY(groups, ColumnGroups::create(spec, rows, n));
  if (weight.size() != rows * n || codes.size() != weight.size() * code_bytes_of(spec))
    return error_at(ErrorCode::shape_mismatch, "", "{} weights and {} bytes of codes do not fit {} rows of {}",
                    weight.size(), codes.size(), rows, n);
  if (qparams.size() != groups.scale_count())
    return error_at(ErrorCode::shape_mismatch, "", "found {} scales; the spec needs {} for {} rows of {}",
                    qparams.size(), groups.scale_count(), rows, n);
  if (const int64_t at = kernels::find_non_finite(weight); at >= 0)
    return error_at(ErrorCode::value_not_finite, "", "weight element {} is NaN or infinite", at);
  const auto comes_first = [&](uint32_t a, uint32_t b) {
    return options.act_order && inputs.square()[a * n + a] > inputs.square()[b * n + b];
  };
  const List<uint32_t> order = sorted_order(n, comes_first);
  Gpfq work{inputs, spec, options, qparams, n, groups, weight, codes};
  work.sums.resize(n * kGpfqStripRows);
  const auto height = static_cast<size_t>(rows);
  for (size_t row = 0; row < height; row += kGpfqStripRows)
    work.run_strip(order, row, std::min(kGpfqStripRows, height - row));
  return {};
}

}  // namespace wasmquant
