#include "model/steps/streams.h"

#include <algorithm>
#include <cmath>

#include "kernels/matmul.h"
#include "model/steps/norm.h"
#include "numeric/exponential.h"

namespace wasmquant::model {
namespace {

float tanh_of(float x) noexcept { return static_cast<float>(1 - 2 / (exp2_of(2 * double{x} / kLn2) + 1)); }

/// x [tokens, in] times weight [out, in].
std::vector<float> product(std::span<const float> x, std::span<const float> weight, size_t in) {
  const size_t tokens = x.size() / in, out = weight.size() / in;
  std::vector<float> y(tokens * out), memory(kernels::matmul_workspace(tokens, out, in));
  kernels::matmul({x.data(), in, 1}, {weight.data(), in, 1}, in, tokens, out, kernels::Update::set,
                  kernels::Region::all, y.data(), out, memory.data());
  return y;
}

/// r(x), [tokens, count].
std::vector<float> routed_to(const Architecture& a, const StreamWeights& weights, std::span<const float> x) {
  std::vector<float> normed(x.size());
  normalize({a.norms.epsilon, a.norms.plus_one}, weights.norm, {}, x.data(), x.size() / a.hidden, a.hidden,
            normed.data());
  const float share = 1 / static_cast<float>(a.hidden);
  for (float& value : normed) value *= share;
  std::vector<float> out = product(normed, weights.router, a.hidden);
  for (float& value : out) value = tanh_of(value);
  return out;
}

double mean_square(const float* x, size_t count) noexcept {
  double sum = 0;
  for (size_t i = 0; i < count; ++i) sum += double{x[i]} * x[i];
  return sum / static_cast<double>(count);
}

/// Each row of y becomes as long as that of `like`.
void match_lengths(const float* like, std::span<float> y, size_t columns) noexcept {
  constexpr double kLeast = 1e-5;
  for (size_t at = 0; at < y.size(); at += columns) {
    const double wanted = std::sqrt(mean_square(like + at, columns)),
                 found = std::sqrt(std::max(mean_square(y.data() + at, columns), kLeast));
    for (size_t i = 0; i < columns; ++i) y[at + i] = static_cast<float>(y[at + i] * wanted / found);
  }
}

}  // namespace

std::vector<float> predict_streams(const Architecture& a, const StreamWeights& weights, std::span<const float> x) {
  const size_t count = a.streams.count, hidden = a.hidden, size = x.size() / count;
  const std::vector<float> routed = routed_to(a, weights, x.subspan(a.streams.active * size, size)),
                           factors = product(routed, weights.predictions, count);
  std::vector<float> out(x.begin(), x.end());
  for (size_t i = 0; i < count; ++i)
    for (size_t j = 0; j < count; ++j)
      for (size_t at = 0; at < size; ++at)
        out[i * size + at] += factors[(at / hidden * count + i) * count + j] * x[j * size + at];
  return out;
}

void correct_streams(const Architecture& a, const StreamWeights& weights, std::span<const float> predicted,
                     std::span<const float> y, std::span<float> x) {
  const size_t count = a.streams.count, hidden = a.hidden, size = y.size();
  const std::vector<float> factors = product(routed_to(a, weights, y), weights.corrections, count);
  const std::span<const float> active = predicted.subspan(a.streams.active * size, size);
  for (size_t i = 0; i < count; ++i)
    for (size_t at = 0; at < size; ++at)
      x[i * size + at] = predicted[i * size + at] + (y[at] - active[at]) * (factors[at / hidden * count + i] + 1);
}

void part_streams(const Architecture& a, std::span<const std::vector<float>> matrices, std::vector<float>& x) {
  const size_t size = x.size();
  const std::vector<float> first = x;
  for (size_t stream = 1; stream < a.streams.count; ++stream) {
    std::vector<float> y = product(first, matrices[stream - 1], a.hidden);
    match_lengths(first.data(), y, a.hidden);
    x.insert(x.end(), y.begin(), y.end());
  }
  x.resize(size * a.streams.count);
}

void join_streams(const Architecture& a, std::span<const std::vector<float>> matrices, std::vector<float>& x) {
  const size_t count = a.streams.count, size = x.size() / count;
  const std::span<const float> all = x;
  std::vector<float> sum(all.begin(), all.begin() + static_cast<ptrdiff_t>(size));
  for (size_t stream = 1; stream < count; ++stream) {
    std::vector<float> y = product(all.subspan(stream * size, size), matrices[stream - 1], a.hidden);
    match_lengths(x.data(), y, a.hidden);
    for (size_t i = 0; i < size; ++i) sum[i] += y[i];
  }
  for (float& value : sum) value /= static_cast<float>(count);
  x = std::move(sum);
}

void limit_gate(std::span<float> x, size_t columns, float limit) noexcept {
  for (size_t at = 0; at < x.size(); at += columns) {
    double sum = 0, squares = 0;
    for (size_t i = 0; i < columns; ++i) sum += double{x[at + i]};
    const double mean = sum / static_cast<double>(columns);
    for (size_t i = 0; i < columns; ++i) squares += (x[at + i] - mean) * (x[at + i] - mean);
    const double least = mean + std::sqrt(squares / static_cast<double>(columns)) * double{limit};
    for (size_t i = 0; i < columns; ++i) x[at + i] = static_cast<float>(std::max(x[at + i] - least, 0.0));
  }
}

}  // namespace wasmquant::model
