// Equations of the scales, strip by strip of rows; descent over blocks of columns, whose changes reach the others in one product.
#include "algorithms/rounding/refinement.h"

#include <algorithm>
#include <cmath>

#include "algorithms/linear_algebra.h"
#include "quantize/quantize.h"

namespace wasmquant {
namespace {

constexpr size_t kRefinedRows = Descent::kRows, kRefinedColumns = Descent::kColumns;
// Draws scales towards those they have: of the group's own square, and of the mean of all.
constexpr double kOwnRidge = 1e-4, kMeanRidge = 1e-5;

// Rows [first, first + count) of a [rows, n] matrix, transposed: [n][kRefinedRows].
void take_strip(std::span<const float> x, size_t n, size_t first, size_t count, std::vector<float>& strip) {
  strip.resize(n * kRefinedRows);
  for (size_t r = 0; r < count; ++r)
    for (size_t j = 0; j < n; ++j) strip[j * kRefinedRows + r] = x[(first + r) * n + j];
  for (size_t r = count; r < kRefinedRows; ++r)
    for (size_t j = 0; j < n; ++j) strip[j * kRefinedRows + r] = 0;
}

// Adds x[r] y[r] of each row to its sum.
void add_products(const float* __restrict x, const float* __restrict y, double* __restrict sums) noexcept {
  for (size_t r = 0; r < kRefinedRows; ++r) sums[r] += double{x[r]} * double{y[r]};
}

// Solves A s = b, A symmetric and positive definite, by Cholesky's A = L L^T in place of its lower triangle. False if it is not.
bool solve(std::vector<double>& a, std::vector<double>& b) noexcept {
  const size_t n = b.size();
  for (size_t j = 0; j < n; ++j) {
    for (size_t i = j; i < n; ++i) {
      double sum = a[i * n + j];
      for (size_t p = 0; p < j; ++p) sum -= a[i * n + p] * a[j * n + p];
      if (i == j && !(sum > 0)) return false;
      a[i * n + j] = i == j ? std::sqrt(sum) : sum / a[j * n + j];
    }
  }
  for (size_t i = 0; i < n; ++i) {
    for (size_t p = 0; p < i; ++p) b[i] -= a[i * n + p] * b[p];
    b[i] /= a[i * n + i];
  }
  for (size_t i = n; i-- > 0;) {
    for (size_t p = i + 1; p < n; ++p) b[i] -= a[p * n + i] * b[p];
    b[i] /= a[i * n + i];
  }
  return true;
}

// The columns of each group, one group after the other.
std::vector<std::vector<uint32_t>> columns_of_groups(const RefinedRows& rows) {
  std::vector<std::vector<uint32_t>> out(rows.group_count);
  for (size_t j = 0; j < rows.groups.size(); ++j) out[rows.groups[j]].push_back(static_cast<uint32_t>(j));
  return out;
}

}  // namespace

bool can_refit(const QuantizationSpec& spec) noexcept {
  const bool has_scales = spec.qscheme == QScheme::per_group || spec.qscheme == QScheme::per_channel;
  const bool has_whole_zero = spec.symmetric || spec.zero_point_type == ZeroPointType::int32;
  return info_of(spec.dtype).is_integer && has_scales && has_whole_zero && spec.scale_format == ScaleFormat::float32;
}

void refit_row_scales(const RefinedRows& rows, const CallableRef<float(float)>& stored) {
  const size_t n = rows.groups.size(), count = rows.group_count, height = n == 0 ? 0 : rows.weight.size() / n;
  const std::vector<std::vector<uint32_t>> columns = columns_of_groups(rows);
  std::vector<float> codes, weight, of_group, of_hessian, product;
  std::vector<double> all, right;
  for (size_t first = 0; first < height; first += kRefinedRows) {
    const size_t strip = std::min(kRefinedRows, height - first);
    take_strip(rows.weight, n, first, strip, weight);
    take_strip(rows.values, n, first, strip, codes);
    for (size_t j = 0; j < n; ++j)
      for (size_t r = 0; r < strip; ++r)
        codes[j * kRefinedRows + r] =
            std::round(codes[j * kRefinedRows + r] / rows.qparams[(first + r) * count + rows.groups[j]].scale);
    all.assign(count * count * kRefinedRows, 0.0);  // [group][group up to it][row]
    right.assign(count * kRefinedRows, 0.0);        // [group][row]
    for (size_t g = 0; g < count; ++g) {
      of_group.clear();
      of_hessian.clear();
      for (const uint32_t j : columns[g]) {
        of_group.insert(of_group.end(), codes.begin() + static_cast<ptrdiff_t>(j * kRefinedRows),
                        codes.begin() + static_cast<ptrdiff_t>((j + 1) * kRefinedRows));
        of_hessian.insert(of_hessian.end(), rows.hessian.begin() + static_cast<ptrdiff_t>(j * n),
                          rows.hessian.begin() + static_cast<ptrdiff_t>((j + 1) * n));
      }
      product.assign(n * kRefinedRows, 0.0f);  // H c of the group
      add_product(1, {of_hessian.data(), n}, {of_group.data(), kRefinedRows}, columns[g].size(), n, kRefinedRows,
                  {product.data(), kRefinedRows});
      for (size_t j = 0; j < n; ++j) {
        const float* const change = product.data() + j * kRefinedRows;
        add_products(change, weight.data() + j * kRefinedRows, right.data() + g * kRefinedRows);
        if (rows.groups[j] > g) continue;  // symmetric
        add_products(change, codes.data() + j * kRefinedRows, all.data() + (g * count + rows.groups[j]) * kRefinedRows);
      }
    }
    std::vector<double> a(count * count), b(count);
    for (size_t r = 0; r < strip; ++r) {
      QParams* const scales = rows.qparams.data() + (first + r) * count;
      double mean = 0;
      for (size_t g = 0; g < count; ++g) mean += all[(g * count + g) * kRefinedRows + r] / static_cast<double>(count);
      for (size_t g = 0; g < count; ++g) {
        b[g] = right[g * kRefinedRows + r];
        for (size_t h = 0; h <= g; ++h) a[g * count + h] = all[(g * count + h) * kRefinedRows + r];
        const double ridge = kOwnRidge * a[g * count + g] + kMeanRidge * mean;
        a[g * count + g] += ridge;
        b[g] += ridge * scales[g].scale;
      }
      bool is_solved = solve(a, b);
      for (size_t g = 0; g < count && is_solved; ++g) {
        const double magnitude = b[g] * std::copysign(1.0, scales[g].scale);
        is_solved = std::isfinite(b[g]) && magnitude >= kScaleEpsilon;
      }
      if (!is_solved) continue;
      for (size_t g = 0; g < count; ++g) scales[g].scale = stored(static_cast<float>(b[g]));
      for (size_t j = 0; j < n; ++j)
        rows.values[(first + r) * n + j] = codes[j * kRefinedRows + r] * scales[rows.groups[j]].scale;
    }
  }
}

void descend(std::span<const float> hessian, std::span<const float> weight, std::span<float> values,
             const CallableRef<void(Descent& at)>& improve) {
  const auto n = static_cast<size_t>(std::sqrt(static_cast<double>(hessian.size())) + 0.5);
  const size_t height = n == 0 ? 0 : weight.size() / n;
  const float* const h = hessian.data();
  std::vector<float> pull, now, strip, change(kRefinedColumns * kRefinedRows);
  for (size_t first = 0; first < height; first += kRefinedRows) {
    const size_t count = std::min(kRefinedRows, height - first);
    take_strip(weight, n, first, count, strip);
    take_strip(values, n, first, count, now);
    for (size_t i = 0; i < strip.size(); ++i) strip[i] -= now[i];
    pull.assign(n * kRefinedRows, 0.0f);  // H (w - q)
    add_product(1, {h, n}, {strip.data(), kRefinedRows}, n, n, kRefinedRows, {pull.data(), kRefinedRows});
    for (size_t begin = 0; begin < n; begin += kRefinedColumns) {
      const size_t end = std::min(begin + kRefinedColumns, n);
      std::fill(change.begin(), change.end(), 0.0f);
      Descent at{first, count, begin, end, h, n, now.data(), pull.data(), change.data()};
      improve(at);
      const size_t depth = end - begin;
      add_product(-1, {h + begin * n, n}, {change.data(), kRefinedRows}, depth, begin, kRefinedRows,
                  {pull.data(), kRefinedRows});
      add_product(-1, {h + begin * n + end, n}, {change.data(), kRefinedRows}, depth, n - end, kRefinedRows,
                  {pull.data() + end * kRefinedRows, kRefinedRows});
    }
    for (size_t r = 0; r < count; ++r)
      for (size_t j = 0; j < n; ++j) values[(first + r) * n + j] = now[j * kRefinedRows + r];
  }
}

bool Descent::wanted(size_t column, float* x) const noexcept {
  const float diagonal = hessian[column * columns + column];
  if (!(diagonal > 0)) return false;
  for (size_t r = 0; r < count; ++r) x[r] = now[column * kRefinedRows + r] + pull[column * kRefinedRows + r] / diagonal;
  return true;
}

void Descent::set(size_t column, const float* x) noexcept {
  float delta[kRefinedRows] = {};
  float* const value = now + column * kRefinedRows;
  for (size_t r = 0; r < count; ++r) {
    delta[r] = x[r] - value[r];
    value[r] = x[r];
    change[(column - begin) * kRefinedRows + r] += delta[r];
  }
  for (size_t i = begin; i < end; ++i)
    subtract_scaled({pull + i * kRefinedRows, kRefinedRows}, hessian[column * columns + i], delta);
}

void descend_codes(const RefinedRows& rows) {
  const size_t n = rows.groups.size(), bytes = code_bytes_of(rows.spec);
  descend(rows.hessian, rows.weight, rows.values, [&](Descent& at) {
    Granularity g;
    g.axis = at.count;  // one scale per element
    for (size_t j = at.begin; j < at.end; ++j) {
      float x[kRefinedRows];
      if (!at.wanted(j, x)) continue;
      QParams scales[kRefinedRows];
      alignas(4) uint8_t code[4 * kRefinedRows];
      for (size_t r = 0; r < at.count; ++r)
        scales[r] = rows.qparams[(at.first + r) * rows.group_count + rows.groups[j]];
      quantize(g, rows.spec, {scales, at.count}, kernels::Path::fake, {x, at.count}, 0, code);
      dequantize(g, rows.spec, {scales, at.count}, code, at.count, 0, x);
      for (size_t r = 0; r < at.count; ++r)
        std::copy_n(code + r * bytes, bytes, rows.codes.data() + ((at.first + r) * n + j) * bytes);
      at.set(j, x);
    }
  });
}

void damp_diagonal(std::span<float> hessian, size_t columns, double damp_percent) noexcept {
  double sum = 0;
  for (size_t j = 0; j < columns; ++j) sum += hessian[j * columns + j] == 0 ? 1.0f : hessian[j * columns + j];
  const double damping = damp_percent * sum / static_cast<double>(columns);
  for (size_t j = 0; j < columns; ++j) {
    float& value = hessian[j * columns + j];
    if (value != 0) value = static_cast<float>(value + damping);
  }
}

}  // namespace wasmquant
