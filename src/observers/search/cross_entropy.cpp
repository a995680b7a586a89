#include "observers/search/cross_entropy.h"

#include <algorithm>

#include "kernels/exponential.h"
#include "numeric/exponential.h"
#include "observers/statistics/pairwise_sum.h"

namespace wasmquant {
namespace {

// Values whose exponentials are added in float32; sums of these are added in float64.
constexpr size_t kBlock = 256;

// The sum of exp(v[i]), i = begin, begin + stride...; i < end.
double sum_of_exponentials(const float* v, uint64_t begin, uint64_t end, uint64_t stride) noexcept {
  double sum = 0;
  float block[kBlock];
  while (begin < end) {
    size_t count = 0;
    for (; count < kBlock && begin < end; begin += stride) block[count++] = v[begin];
    sum += kernels::exponentials({block, count}, 0, block);
  }
  return sum;
}

}  // namespace

Classes classes_of(std::span<const uint64_t> shape, uint64_t count) noexcept {
  Classes layout;
  if (shape.size() >= 2) {
    layout.outer = shape[0];
    layout.classes = shape[1];
    for (const uint64_t length : shape.subspan(2)) layout.inner *= length;
  }
  return layout.outer * layout.classes * layout.inner == count ? layout : Classes{1, count, 1};
}

void log_softmax(std::span<float> v, const Classes& layout) noexcept {
  for (uint64_t line = 0; line < layout.outer * layout.inner; ++line) {
    const uint64_t begin = line / layout.inner * layout.classes * layout.inner + line % layout.inner;
    const uint64_t end = begin + layout.classes * layout.inner;
    float max = v[begin];
    for (uint64_t i = begin; i < end; i += layout.inner) max = std::max(max, v[i]);
    for (uint64_t i = begin; i < end; i += layout.inner) v[i] -= max;
    const auto sum = static_cast<float>(sum_of_exponentials(v.data(), begin, end, layout.inner));
    const auto log = static_cast<float>(log2_of(sum) * kLn2);
    for (uint64_t i = begin; i < end; i += layout.inner) v[i] -= log;
  }
}

CrossEntropy::CrossEntropy(std::span<const float> x, const Classes& layout)
    : layout_(layout), probabilities_(x.begin(), x.end()) {
  log_softmax(probabilities_, layout);
  kernels::exponentials(probabilities_, 0, probabilities_.data());
}

float CrossEntropy::operator()(std::span<float> y) const noexcept {
  log_softmax(y, layout_);
  for (size_t i = 0; i < y.size(); ++i) y[i] *= -probabilities_[i];
  return pairwise_sum(y);
}

}  // namespace wasmquant
